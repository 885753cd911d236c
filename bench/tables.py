"""The tables that run_bench.py prints, made from what the benchmarks answer."""

from __future__ import annotations

from typing import Any


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def ns(value: float) -> str:
    return f"{value:.0f} ns" if value >= 10 else f"{value:.1f} ns"


def percent(ratio: dict[str, Any]) -> str:
    return f"{ratio['ratio']:.3f} × ({ratio['low']:.3f} to {ratio['high']:.3f})"


def verdict(met: bool) -> str:
    return "met" if met else "**not met**"


def event_tables(result: dict[str, Any]) -> str:
    none, idle, recording = result["none"], result["idle"], result["recording"]
    rows = []
    names = {
        "stack_1": f"{result['depth']}-frame Python stack, 1 thread, warm",
        "stack_2": "the same, 2 threads",
        "stack_4": "the same, 4 threads",
        "stack_cold": f"the same, 1 thread, {result['touch'] >> 20} MiB touched between events",
        "plain_1": "no Python stack, 1 thread, warm",
        "plain_2": "the same, 2 threads",
        "plain_4": "the same, 4 threads",
        "plain_cold": "the same, 1 thread, cold",
    }
    for key, name in names.items():

        def added(mode: dict[str, Any], what: str, key: str = key) -> str:
            return ns(mode[key][what] - none[key][what])

        low = recording[key]["alloc_ns_min"] - none[key]["alloc_ns"]
        high = recording[key]["alloc_ns_max"] - none[key]["alloc_ns"]
        rows.append(
            [
                name,
                f"{added(recording, 'alloc_ns')} ({low:.0f} to {high:.0f})",
                added(recording, "free_ns"),
                added(idle, "alloc_ns"),
                added(idle, "free_ns"),
                f"{recording[key].get('events_per_s', 0) / 1e6:.1f} M" if "cold" not in key else "",
                str(recording[key]["dropped"]),
            ]
        )
    warm = recording["stack_1"]["alloc_ns"] - none["stack_1"]["alloc_ns"]
    cold = recording["stack_cold"]["alloc_ns"] - none["stack_cold"]["alloc_ns"]
    scaling = {
        key: [recording[f"stack_{n}"][key] for n in (1, 2, 4)]
        for key in ("events_per_s", "events_per_cpu_s")
    }
    one, two, four = scaling["events_per_s"]
    cpu_one, cpu_two, cpu_four = scaling["events_per_cpu_s"]
    text = "Added time of one event, median of bursts (lowest to highest):\n\n"
    head = ["event", "alloc", "free", "alloc, idle", "free, idle", "events/s", "dropped"]
    text += table(head, rows)
    text += "\n" + table(
        ["target", "measured", ""],
        [
            ["alloc with a 30-frame stack ≤ 150 ns warm", ns(warm), verdict(warm <= 150)],
            ["≤ 800 ns with 4 MB touched between events", ns(cold), verdict(cold <= 800)],
            [
                "2 threads ≥ 1.8 × the events/s of one",
                f"{two / one:.2f} ×",
                verdict(two >= 1.8 * one),
            ],
            ["4 threads ≥ 0.9 × that", f"{four / two:.2f} ×", verdict(four >= 0.9 * two)],
            [
                "2 threads on a core each ≥ 1.8 × (by CPU time: contention alone)",
                f"{cpu_two / cpu_one:.2f} ×",
                verdict(cpu_two >= 1.8 * cpu_one),
            ],
            [
                "4 threads, by CPU time, of an ideal 4 ×",
                f"{cpu_four / cpu_one:.2f} ×",
                "",
            ],
        ],
    )
    storm = result["fsync"]
    text += (
        f"\nUnder an fsync storm on the trace's disk: worst alloc "
        f"{storm['worst_ns'] / 1e6:.2f} ms, 99.99th percentile {ns(storm['p9999_ns'])}.\n"
    )
    return text


def over(part: float, whole: float) -> str:
    """A ratio of added times; nothing where there is nothing to compare with."""
    return f"{part / whole:.2f} ×" if whole > 0 else ""


def host_tables(result: dict[str, Any]) -> str:
    """Added time: that of the tool less that of no tool in the same turns."""
    rows, targets = [], []
    peers = [tool for tool in ("heaptrack", "memray") if tool in result["tools"]]
    for row in result["rows"]:
        name = f"{row['threads']} thread{'s' if row['threads'] > 1 else ''}, {row['depth']} deep"
        cells = [name, ns(row["none_wall"])]
        ours = row["memscope_wall"] - row["none_wall"]
        low, high = (row[f"memscope_wall_{end}"] - row["none_wall"] for end in ("min", "max"))
        cells.append(f"+{ns(ours)} ({low:.0f} to {high:.0f})")
        for tool in peers:
            theirs = row[f"{tool}_wall"] - row["none_wall"]
            ours_cpu, theirs_cpu = (
                row[f"{each}_cpu"] - row["none_cpu"] for each in ("memscope", tool)
            )
            cells += [f"+{ns(theirs)}", over(ours, theirs), over(ours_cpu, theirs_cpu)]
            if row["threads"] <= 2:
                target = 0.4 if row["threads"] == 1 else 0.25
                wanted = f"{name}: ≤ {target} × {tool}'s"
                targets.append([wanted, over(ours, theirs), verdict(ours <= target * theirs)])
        rows.append(cells)
    head = ["malloc and free", "no tool", "host source"]
    for tool in peers:
        head += [tool, "ratio", "by CPU time"]
    text = "Wall time of a pair in one thread, added by each tool, median of turns:\n\n"
    text += table(head, rows)
    if targets:
        text += "\n" + table(["target", "measured", ""], targets)
    return text


def python_table(result: dict[str, Any]) -> str:
    """Beside memray, like with like: Python stacks alone, and with native ones."""
    rows = []
    for row in result["rows"]:
        base = row["none_cpu"]
        added = {tool: row[f"{tool}_cpu"] - base for tool in result["tools"]}
        cells = [f"{row['kind']}, {row['allocator']}", f"{base:.0f} ms"]
        for ours, theirs in (("memscope", "memray"), ("memscope_native", "memray_native")):
            cells.append(f"{added[ours]:+.0f} ms")
            if theirs not in added:
                continue
            cells += [f"{added[theirs]:+.0f} ms", over(added[ours], added[theirs])]
            cells.append(verdict(added[ours] <= 0.5 * added[theirs]))
        rows.append(cells)
    head = ["CPU time of the program's thread", "no tool"]
    for stacks in ("Python stacks", "with native stacks"):
        head.append(f"host source, {stacks}")
        if "memray" in result["tools"]:
            head += ["memray", "ratio", "≤ 0.5 ×"]
    return f"{result['rounds']} rounds:\n\n" + table(head, rows)


def trace_table(result: dict[str, Any]) -> str:
    rows = []
    tools = [tool for tool in ("memscope", "heaptrack", "memray") if tool in result]
    ours = result["memscope"]
    for tool in tools:
        one = result[tool]
        record, report = one["record"], one["report"]
        compared = ["", ""]
        if tool != "memscope":
            compared = [
                f"{ours['bytes'] / one['bytes']:.2f} × "
                f"({verdict(ours['bytes'] <= 0.4 * one['bytes'])})",
                f"{over(ours['report']['wall_s'], report['wall_s'])} "
                f"({verdict(ours['report']['wall_s'] <= 0.25 * report['wall_s'])})",
            ]
        rows.append(
            [
                tool,
                f"{one['bytes'] / result['events']:.2f} B",
                compared[0],
                f"{record['wall_s']:.1f} s ({record['cpu_s']:.1f} s of CPU)",
                f"{report['wall_s']:.2f} s ({report['cpu_s']:.2f} s of CPU)",
                compared[1],
                f"{report['peak_bytes'] / 1e6:.0f} MB",
            ]
        )
    head = ["", "bytes an event", "ours, ≤ 0.4 ×", "recording", "first report", "ours, ≤ 0.25 ×"]
    return f"{result['events'] / 1e6:g} M events, {result['kept']:,} blocks alive:\n\n" + table(
        [*head, "its memory"], rows
    )


def train_table(results: list[dict[str, Any]]) -> str:
    targets = {"realistic": 1.03, "opbound": 1.06}
    others = {
        "idle": "idle",
        "profiler": "torch.profiler, memory and stacks",
        "profiler_memory": "torch.profiler, memory",
        "memray": "memray",
    }
    rows = []
    for result in results:
        target = targets[result["model"]]
        rows.append(
            [
                f"{result['model']}, PyTorch {result['torch'].split('+')[0]}, "
                f"Python {result['python']}",
                f"{result['step_ms']:.1f} ms",
                f"{result['events_per_step']:.0f}",
                percent(result["agent"]),
                f"≤ {target:.2f} ×",
                verdict(result["agent"]["ratio"] <= target),
                *(percent(result[side]) if side in result else "" for side in others),
                f"{result['bytes_per_event']:.1f} B" if "bytes_per_event" in result else "",
                str(result["dropped"]),
            ]
        )
    head = ["training step", "without", "events", "recording", "target", "", *others.values()]
    return table([*head, "disk an event (target ≤ 8 B)", "dropped"], rows)


def analyze_table(results: list[dict[str, Any]]) -> str:
    rows = [
        [
            f"{result['events'] / 1e6:.0f} M",
            f"{result['trace_bytes'] / 1e6:.0f} MB",
            f"{result['wall_s']:.2f} s (at most {result['wall_s_max']:.2f})",
            f"{result['events_per_s'] / 1e6:.1f} M/s",
            f"{result['events_per_cpu_s'] / 1e6:.1f} M/s",
            "≥ 10 M/s",
            verdict(result["events_per_cpu_s"] >= 10e6),
            f"{result['peak_bytes'] / 1e6:.0f} MB",
        ]
        for result in results
    ]
    head = ["events", "trace", "wall", "events/s", "events/s a core", "target", "", "peak memory"]
    return table(head, rows)


def export_tables(result: dict[str, Any]) -> str:
    def row(name: str, kind: str, target: str = "", met: str = "") -> list[str]:
        speed = result[kind]
        return [
            name,
            f"{speed['rows_per_s'] / 1e6:.2f} M ({speed['rows_per_s_min'] / 1e6:.2f} to "
            f"{speed['rows_per_s_max'] / 1e6:.2f})",
            f"{speed['rows_per_cpu_s'] / 1e6:.2f} M",
            target,
            met,
        ]

    ratio = result["db_to_columns"]
    csv_met = verdict(result["csv"]["rows_per_s"] >= 1e6)
    rows = [
        row("trace to csv", "csv", "≥ 1 M rows/s", csv_met),
        row("trace to db", "db", f"≥ 0.6 × SQLite's: {ratio:.2f} ×", verdict(ratio >= 0.6)),
        row("SQLite's INSERT…SELECT of that db", "columns"),
        row(
            "the same where SQLite copies whole records "
            f"(ours is {result['db_to_records']:.2f} × that)",
            "records",
        ),
    ]
    text = f"{result['rows']:,} rows, without stacks; rows/s of wall time (lowest to highest):\n\n"
    text += table(["", "rows/s", "rows/s of CPU time", "target", ""], rows)
    big = result["big"]
    text += f"\n{big['events'] / 1e6:.0f} M events: " + ", ".join(
        f"{kind} in {big[kind]['wall_s']:.1f} s and {big[kind]['peak_bytes'] / 1e6:.0f} MB"
        for kind in ("csv", "db")
    )
    return text + " of memory at most.\n"


def import_table(result: dict[str, Any]) -> str:
    names = {
        "csv": "csv",
        "unordered": "csv, rows in the original's order",
        "db": "db",
        "big": "csv",
    }
    rows = [
        [
            name,
            f"{result[kind]['rows'] / 1e6:.0f} M",
            f"{result[kind]['bytes'] / 1e6:.0f} MB",
            f"{result[kind]['rows_per_s'] / 1e6:.2f} M ({result[kind]['rows_per_s_min'] / 1e6:.2f} "
            f"to {result[kind]['rows_per_s_max'] / 1e6:.2f})",
            f"{result[kind]['rows_per_cpu_s'] / 1e6:.2f} M",
            f"{result[kind]['peak_bytes'] / 1e6:.0f} MB",
        ]
        for kind, name in names.items()
    ]
    head = ["`analyze` of", "rows", "size", "rows/s", "rows/s of CPU time", "peak memory"]
    return table(head, rows)


def view_tables(answer: dict[str, Any]) -> str:
    results = answer["traces"]
    opening = []
    asked: dict[str, list[str]] = {}
    for result in results:
        cold, warm, memory = result["cold"], result["warm"], result["memory"]
        opening.append(
            [
                f"{result['trace_events'] / 1e6:.0f} M events, "
                f"{result['blocks'] / 1e6:.1f} M blocks",
                f"{result['index_bytes'] / 1e6:.0f} MB",
                f"{cold['picture_s']:.2f} s ({cold['cpu_s']:.2f} s of CPU)",
                "≤ 2 s",
                verdict(cold["picture_s"] <= 2),
                f"{warm['picture_s']:.2f} s",
                "≤ 0.5 s",
                verdict(warm["picture_s"] <= 0.5),
                f"{memory['VmHWM'] / 1e6:.0f} MB",
                "≤ 1 GB",
                verdict(memory["VmHWM"] <= 1 << 30),
            ]
        )
        for kind, taken in result["queries"].items():
            row = asked.setdefault(kind, [kind, str(taken["count"])])
            row.append(
                f"{taken['median_s'] * 1e3:.0f} / {taken['p95_s'] * 1e3:.0f} / "
                f"{taken['max_s'] * 1e3:.0f} ms{'' if taken['max_s'] <= 0.2 else ' **(> 200)**'}"
            )
    head = ["trace", "index", "first picture, cold", "target", "", "warm", "target", ""]
    text = table([*head, "memory at most", "target", ""], opening)
    text += "\nQueries of a page of 1920 × 1000, median / 95 % / slowest; target ≤ 200 ms:\n\n"
    names = [f"{result['blocks'] / 1e6:.1f} M blocks" for result in results]
    text += table(["query", "asked", *names], list(asked.values()))
    if "growing" not in answer:
        return text
    rows = [
        [
            f"{run['events'] / 1e6:.1f} M events",
            f"{run['period_median_s']:.2f} s (at most {run['period_max_s']:.2f})",
            "≤ 1 s",
            verdict(run["period_max_s"] <= 1),
            f"{run['lag_median_s']:.2f} s (at most {run['lag_max_s']:.2f})",
        ]
        for run in answer["growing"]
    ]
    head = ["a run being written", "made anew every", "target", "", "a step is there after"]
    text += "\nA page asks once a second whether there is a newer index.\n\n" + table(head, rows)
    return text + browser_table(answer.get("browser"))


def browser_table(result: dict[str, Any] | None) -> str:
    if result is None:
        return "\nNo browser was measured: web/node_modules or Chromium is missing.\n"

    def opening(name: str, target: float) -> list[str]:
        one = result[name]
        parts = f"server {one['server']:.0f}, tab {one['tab']:.0f}, page {one['page']:.0f} ms"
        return [
            f"first picture, {name}",
            f"{one['all'] / 1e3:.2f} s ({parts})",
            f"≤ {target:g} s",
            verdict(one["all"] <= target * 1e3),
        ]

    def moving(name: str, kind: str) -> list[str]:
        one = result[kind]
        # Frames come at multiples of 16.7 ms: two of them are the target.
        return [
            f"frames while {name}, 95 % (worst)",
            f"{one['p95']:.1f} ms ({one['worst']:.1f} ms)",
            "≤ 33 ms",
            verdict(one["p95"] < 34),
        ]

    rows = [
        opening("cold", 2),
        opening("warm", 0.5),
        moving("panning", "pan"),
        moving("zooming", "zoom"),
        [
            "JavaScript heap",
            f"{result['heap'] / 1e6:.0f} MB",
            "≤ 200 MB",
            verdict(result["heap"] <= 200e6),
        ],
    ]
    text = "\nIn Chromium, headless, without a GPU; from the start of the command on:\n\n"
    return text + table(["10 M events, 5 M blocks", "measured", "target", ""], rows)
