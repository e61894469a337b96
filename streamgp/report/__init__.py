"""Results for people to read: a table for the terminal, a picture, a web page.

Works from plain values and writes only to the path it is given.

"""
