"""Writes the sea surface temperatures of the El Niño region as a table that `ebp train --data` reads:
one set per year (1950 to 2010), t the month (1 to 12), x the temperature in degrees Celsius.

The data are NOAA's, in the public domain, as statsmodels ships them (`statsmodels.datasets.elnino`).

    python3 -m venv ../tables && ../tables/bin/pip install statsmodels
    ../tables/bin/python tools/data/el_nino.py el_nino.csv
"""

import sys

from statsmodels.datasets import elnino

years = elnino.load_pandas().data
with open(sys.argv[1], "w") as table:
    table.write("set,t,x\n")
    for _, year in years.iterrows():
        for month, temperature in enumerate(year.values[1:], start=1):
            table.write(f"{int(year.values[0])},{month},{temperature}\n")
