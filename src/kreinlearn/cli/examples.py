"""The examples that --help shows below the options."""

from __future__ import annotations

STATUS = """
The exit status is 0, or 1 if a file, the data or the disk did not allow it, 2 for a wrong call,
and 130 after Ctrl-C. A command whose status is not 0 leaves no file behind.
"""
EPILOGS = {
    "": """examples:
  kreinlearn evaluate words.csv --target label --column text --kernel levenshtein
  kreinlearn fit words.csv --target label --column text --kernel levenshtein -o model.krein
  kreinlearn predict model.krein new.csv -o predicted.csv
  kreinlearn inspect words.csv --target label --column text --html report.html
  kreinlearn kernels                    which similarities there are, and for which objects
""",
    "inspect": """examples:
  kreinlearn inspect words.csv --column text --kernel levenshtein --html report.html
  kreinlearn inspect distances.npy --kernel precomputed_dissimilarity
  kreinlearn inspect data.npz --column D --target labels --json
""",
    "fit": f"""examples:
  kreinlearn fit words.csv --target label --column text --kernel levenshtein -o model.krein
  kreinlearn fit houses.csv --target price --column size --column age -o model.krein
  kreinlearn fit series.jsonl --target kind --column values --kernel dtw \\
      --kernel-param window=0.1 --estimator svc --landmarks 200 --store values -o model.krein
  kreinlearn fit people.csv --target label --kernel name=jaro_winkler --kernel age=gaussian \\
      -o model.krein
  kreinlearn fit houses.csv --target price --conformal split -o model.krein
  kreinlearn fit distances.npz --kernel precomputed_dissimilarity --target y -o model.krein
  kreinlearn fit distances.csv --kernel precomputed_dissimilarity --labels classes.txt -o m.krein

The target decides what is learned: texts, and up to 20 whole numbers that repeat, are classes;
other numbers are predicted as numbers. Use --task, or a class for --estimator, to decide yourself.
{STATUS}""",
    "predict": f"""examples:
  kreinlearn predict model.krein new.csv -o predicted.csv
  kreinlearn predict model.krein new.csv --id name --scores -o predicted.csv
  kreinlearn predict model.krein new.parquet --probabilities | head
  kreinlearn predict model.krein new.csv --coverage 0.9 --novelty -o predicted.csv
  kreinlearn predict model.krein new.csv --explain 3 -o predicted.jsonl

Columns are found by the names they had in fit. The file is read one block of rows at a time, so it
may be larger than the memory. A matrix of similarities has one row for every new object and one
column for every object that the model was fitted on.

With --explain, for_1 is the landmark that adds most to the decision value of what is predicted, and
against_1 the one that takes most from it: a text, or the number of a row in that file (counted
from 0), with its label and its contribution. The contributions and the columns other_landmarks,
constant and, for krein, neighbours and clipped add up to the column value. JSON lines have lists.
{STATUS}""",
    "evaluate": f"""examples:
  kreinlearn evaluate words.csv --target label --column text --kernel levenshtein
  kreinlearn evaluate words.csv --target label --column text --csv errors.csv --html report.html
  kreinlearn evaluate words.csv --target label --learners krein,svc,neighbours
  kreinlearn evaluate distances.npz --column D --target y --kernel precomputed_dissimilarity --json
{STATUS}""",
    "kernels": """examples:
  kreinlearn kernels
  kreinlearn kernels --objects texts
""",
    "approximate": f"""examples:
  kreinlearn approximate words.csv --column text --kernel levenshtein --rank 50 -o factors.npz
  kreinlearn approximate rows.npy --kernel delta_gauss --tol 0.05 -o factors.npz
{STATUS}""",
    "cluster": f"""examples:
  kreinlearn cluster words.csv --column text --clusters 5 -o groups.csv --report groups.html
  kreinlearn cluster distances.npy --kernel precomputed_dissimilarity --model groups.krein
{STATUS}""",
    "completion": """examples:
  source <(kreinlearn completion bash)      in this shell; put it in ~/.bashrc for every shell
  source <(kreinlearn completion zsh)       the same, in ~/.zshrc
  kreinlearn completion fish > ~/.config/fish/completions/kreinlearn.fish
""",
}
