"""What --help shows below the options."""

from __future__ import annotations

from kreinlearn.paper.names import NAMES, REPORT, RESULTS

REPRODUCE = "the experiments of Oglic & Gaertner (ICML 2019), run again, ours beside the paper's"
STATUS = """
Exit status: 0; 1 where a file, the data or the disk did not allow it; 2 for a wrong call; 130
after Ctrl-C. A command that ends with another status than 0 leaves no file behind.
"""
EPILOGS = {
    "": """examples:
  kreinlearn evaluate words.csv --target label --column text --kernel levenshtein
  kreinlearn fit words.csv --target label --column text --kernel levenshtein -o model.krein
  kreinlearn predict model.krein new.csv -o predicted.csv
  kreinlearn inspect words.csv --target label --column text --html report.html
  kreinlearn demo                       a metric that is no kernel, in a minute
  kreinlearn reproduce quick            every experiment of the paper, in small: a few minutes
""",
    "inspect": """examples:
  kreinlearn inspect words.csv --column text --kernel levenshtein --html report.html
  kreinlearn inspect distances.npy --kernel precomputed_dissimilarity
  kreinlearn inspect data.mat --column D --target labels --json
""",
    "fit": f"""examples:
  kreinlearn fit words.csv --target label --column text --kernel levenshtein -o model.krein
  kreinlearn fit houses.csv --target price --column size --column age -o model.krein
  kreinlearn fit series.jsonl --target kind --column values --kernel dtw \\
      --kernel-param window=0.1 --estimator svc --landmarks 200 --store values -o model.krein
  kreinlearn fit distances.npz --kernel precomputed_dissimilarity --target y -o model.krein
  kreinlearn fit distances.csv --kernel precomputed_dissimilarity --labels classes.txt -o m.krein

The target decides what is learned: texts, or up to 20 whole numbers that repeat, are classes;
other numbers are predicted as numbers. --task or the class of --estimator say otherwise.
{STATUS}""",
    "predict": f"""examples:
  kreinlearn predict model.krein new.csv -o predicted.csv
  kreinlearn predict model.krein new.csv --id name --scores -o predicted.csv
  kreinlearn predict model.krein new.parquet --probabilities | head

Columns are found by the names they had in fit. The file is read a block of rows at a time, so it
may be larger than the memory. A matrix of similarities has a row for every new object and a
column for every object of fit.
{STATUS}""",
    "evaluate": f"""examples:
  kreinlearn evaluate words.csv --target label --column text --kernel levenshtein
  kreinlearn evaluate words.csv --target label --column text --csv errors.csv --html report.html
  kreinlearn evaluate distances.mat --column D --target y --kernel precomputed_dissimilarity --json
{STATUS}""",
    "approximate": f"""examples:
  kreinlearn approximate words.csv --column text --kernel levenshtein --rank 50 -o factors.npz
  kreinlearn approximate rows.npy --kernel delta_gauss --tol 0.05 -o factors.zarr
{STATUS}""",
    "completion": """examples:
  source <(kreinlearn completion bash)      in this shell; in ~/.bashrc: in every one
  source <(kreinlearn completion zsh)       the same, in ~/.zshrc
  kreinlearn completion fish > ~/.config/fish/completions/kreinlearn.fish
""",
}
PARTS = (
    "parts:\n"
    + "\n".join(f"  {name:<22}{what}" for name, what in NAMES.items())
    + f"""

examples:
  kreinlearn reproduce all                  every part; interrupted, the same command goes on
  kreinlearn reproduce quick                every part in small, compared with stored ranges
  kreinlearn reproduce table1 flops         two parts
  kreinlearn reproduce rank-error --quick   one part in small
  kreinlearn reproduce all --report-only    the report again, of what is measured

Data are looked for in the folder that KREINLEARN_DATA names; what is not there is said in
the report, with what to download. Written are {REPORT}, {RESULTS} and figures/*.svg;
measurements.jsonl keeps what was measured. Exit status: 0; 1 where a measurement failed or a
number of the quick run is outside its range; 2 for a wrong call; 130 after Ctrl-C.
"""
)
EPILOGS["reproduce"] = PARTS
