"""Results as people read them: a table for the terminal, a picture, a page.

Works from plain values and writes nothing but to the path it is given.

"""
