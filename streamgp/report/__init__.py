"""Results as people read them: a table for the terminal, a picture, a page.

Works from plain values and writes nothing but to the path it is given.

"""

from streamgp.report.charts import PICTURE_FORMATS, Curve, draw_curves
from streamgp.report.tables import MINIMAL_WIDTH, Row, table

__all__ = ["MINIMAL_WIDTH", "PICTURE_FORMATS", "Curve", "Row", "draw_curves", "table"]
