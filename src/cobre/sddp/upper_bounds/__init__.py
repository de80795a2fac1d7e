"""Upper bounds on what training minimises, valid under nested risk measures too. Start at `find.py`."""
