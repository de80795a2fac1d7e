"""The section on every plant, bus and line; the script of the page finds and draws them."""

from cobre.report.explorer_data import Explorer
from cobre.report.run_folder import RunFolder
from cobre.report.section import Section
from cobre.report.sections.entity_tables import hydro_table, line_table

INTRO = (
    "Search for a plant, bus or line to see its percentiles over all simulated scenarios, single scenarios and "
    "blocks. Values are rounded to four digits; the Parquet files have full precision."
)


def explore(run: RunFolder, explorer: Explorer) -> Section | None:
    """An empty frame, which the script fills from the data of the page, and tables of hydro plants and lines."""
    if not explorer.kinds():
        return None
    tables = [table for make in (hydro_table, line_table) if (table := make(run.study, explorer)) is not None]
    return Section("explore", "Plants, buses and lines", [_FRAME, *tables], INTRO)


_FRAME = """<div class="card wide explorer" id="explorer">
<div class="finder">
<label for="find">Search</label>
<input type="search" id="find" autocomplete="off" spellcheck="false" aria-controls="found"
  aria-describedby="found-count">
<p id="found-count" class="note" role="status" aria-live="polite"></p>
<label for="found">Choose</label>
<select id="found" size="12"></select>
<label for="scenario">Single scenario</label>
<select id="scenario"></select>
<label for="blocks">Blocks</label>
<select id="blocks"><option value="">averages of the stage</option><option value="each">each block</option></select>
<button type="button" id="entity-csv" class="quiet">Download all as CSV</button>
</div>
<div class="found">
<h3 id="entity-name" tabindex="-1"></h3>
<p id="entity-facts" class="explanation"></p>
<div class="grid" id="entity-charts" aria-live="off"></div>
<p id="entity-zeros" class="note"></p>
</div>
</div>"""
