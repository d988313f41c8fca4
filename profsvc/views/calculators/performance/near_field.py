"""``near-field``: intensity of the near field of a fast multipole method, and its balance with the far field."""

from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

COLUMNS = ("points", "flop_per_byte", "printed_flop_per_byte", "gflop_per_s", "bound",
           "near_flop", "far_flop", "both_flop", "boxes_bytes")  # fmt: skip
SOURCE_WORDS = 4  # of a point that an interaction loads when nothing is reused
FAR_BOXES = 6**3 - 3**3
"""Children of the boxes adjacent to a box's parent that are not adjacent to it, in three dimensions."""


def near_field(values: Values) -> Answer:
    """Return intensity and operations at each number of points per box."""
    import numpy as np

    from profsvc.formulas.numerics.flags import AS_PUBLISHED
    from profsvc.formulas.performance import memory_balance as formulas
    from profsvc.formulas.performance.roofline import roofline

    q = np.array(values["points"], dtype=float)
    kappa, boxes, word = values["kappa"], values["neighbors"], values["word"]
    peak, bandwidth = values["peak"], values["bandwidth"]
    target = peak / bandwidth
    found = formulas.near_field(q, kappa, boxes, word)
    print_form = formulas.near_field(q, kappa, boxes, word, AS_PUBLISHED)
    near = boxes * kappa * q
    far = FAR_BOXES * values["translation"] / q if values["translation"] else np.full(q.size, np.nan)
    reached = np.asarray(roofline(found.intensity, [peak], [bandwidth]).attainable)
    bound = np.where(found.intensity >= target, "computation", "memory")
    columns = (q, found.intensity, print_form.intensity, reached / 1e9, bound, near, far, near + far, found.Z * word)
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]
    one, printed = (float(formulas.near_field(1.0, kappa, boxes, word, form).intensity)
                    for form in ("consistent", AS_PUBLISHED))  # fmt: skip
    alone = kappa / (SOURCE_WORDS * word)
    needed = target / one
    notes = [
        "gflop_per_s can be attained; near, far and both are operations per point; boxes_bytes are those of two boxes",
        f"the machine balance is {target:.4g} flop/B; boxes of {needed:.1f} points reach it, "
        f"{8 * needed * word / 1024:.4g} KiB for two of them; by the printed intensity, which counts one "
        f"adjacent box, {target / printed:.0f} points and {8 * target / printed * word / 1024:.4g} KiB, or "
        f"{target / printed * word / 1024:.3g} KiB at one word a point",
        f"{float(found.words.flat[0]):g} words are moved for a point; without any reuse each interaction loads a "
        f"source: {alone:.4g} flop/B, {float(roofline(alone, [peak], [bandwidth]).attainable) / 1e9:.4g} Gflop/s",
    ]
    if values["translation"]:
        best = float(np.sqrt(FAR_BOXES * values["translation"] / (boxes * kappa)))
        notes.append(
            f"near and far field cost the same at {best:.0f} points per box, where their sum is least: the near field "
            "grows with the points, the far field falls"
        )
    else:
        notes.append("no operations of a translation were given, so the far field has no cost")
    scan = np.geomspace(q.min(), q.max(), 60) if q.size > 1 else q
    figure = {
        "title": "Intensity of the near field", "x": "points per box", "y": "flop/B", "log": "xy",
        "series": [{"name": "near field", "x": scan, "y": one * scan},
                   {"name": "as printed", "x": scan, "y": printed * scan},
                   {"name": "machine balance", "x": [scan[0], scan[-1]], "y": [target, target]}],
        "marks": [{"x": needed, "label": "balanced"}],
    }  # fmt: skip
    return Answer(rows, COLUMNS, notes, figure)


CALCULATORS = (
    Calculator(
        name="near-field",
        title="Near and far field of a fast multipole method",
        question="How many points per box make the sums of adjacent boxes compute-bound, and when does the far field "
        "cost as much?",
        source="Kim2012, sections 3.2 to 3.5",
        inputs=(
            Input("points", "Points of a box", "numbers", default="1,4,16,64,256,512", above=0),
            Input("kappa", "Operations of an interaction", default="11", above=0),
            Input("neighbors", "Boxes a box interacts with, itself included", default="27", above=0),
            Input("word", "Size of a word", unit="B", default="4", above=0),
            Input("peak", "Peak of the device", unit="flop/s", default="1e12", above=0),
            Input("bandwidth", "Bandwidth of its memory", unit="B/s", default="1e11", above=0),
            Input("translation", "Operations to move one far box's expansion to another", default="", above=0),
        ),
        answer=near_field,
        examples=(
            Example("Section 3.5: 116 words a point, 0.7 flop/B and 70 Gflop/s without reuse, and 422 points for "
                    "10 flop/B; with all 27 boxes 16 points are enough.", {"points": "1,16,422"}),
            Example("With a far field whose translations cost 20000 operations.",
                    {"points": "16,64,128,256,512", "translation": "20000"}),
        ),
        functions=("performance.memory_balance.near_field", "performance.roofline.roofline"),
        accuracy="baseline of section 3.4: 68.75 Gflop/s against 70 measured",
        has_figure=True,
    ),
)  # fmt: skip
