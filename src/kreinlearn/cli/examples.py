"""The examples that --help shows below the options."""

from __future__ import annotations

EPILOGS = {
    "": """examples:
  kreinlearn evaluate words.csv --target label --column text --kernel levenshtein
  kreinlearn fit words.csv --target label --column text --kernel levenshtein -o model.krein
  kreinlearn predict model.krein new.csv -o predicted.csv
  kreinlearn kernels                    which similarities there are, and for which objects

The exit status is 0, or 1 if a file, the data or the disk did not allow it, 2 for a wrong call,
and 130 after Ctrl-C. A command whose status is not 0 leaves no file behind.
""",
    "inspect": """examples:
  kreinlearn inspect words.csv --column text --kernel levenshtein --html report.html
  kreinlearn inspect distances.npy --kernel precomputed_dissimilarity
""",
    "fit": """examples:
  kreinlearn fit words.csv --target label --column text --kernel levenshtein -o model.krein
  kreinlearn fit people.csv --target label --kernel name=jaro --kernel age=gaussian -o model.krein
  kreinlearn fit distances.csv --kernel precomputed_dissimilarity --labels y.txt -o model.krein
Texts, and up to 20 whole numbers that repeat, are classes; --task decides otherwise.
""",
    "predict": """examples:
  kreinlearn predict model.krein new.csv --id name --scores -o predicted.csv
  kreinlearn predict model.krein new.csv --coverage 0.9 --novelty -o predicted.csv

Columns are found by the names they had in fit, and the file may be larger than the memory. A matrix
has a row for every new object and a column for every object that the model was fitted on.
With --explain, for_1 is the landmark that speaks most for a prediction, against_1 the one that
speaks most against it; contributions, other_landmarks and what else there is add up to value.
""",
    "evaluate": """examples:
  kreinlearn evaluate words.csv --target label --column text --html report.html
  kreinlearn evaluate words.csv --target label --learners krein,svc,neighbours
""",
    "kernels": """examples:
  kreinlearn kernels --objects texts
""",
    "approximate": """examples:
  kreinlearn approximate words.csv --column text --kernel levenshtein --rank 50 -o factors.npz
  kreinlearn approximate rows.npy --kernel delta_gauss --tol 0.05 -o factors.npz
""",
    "cluster": """examples:
  kreinlearn cluster words.csv --column text --clusters 5 -o groups.csv --report groups.html
""",
    "completion": """examples:
  eval "$(kreinlearn completion bash)"      in this shell; put it in ~/.bashrc for every shell
  kreinlearn completion zsh > ~/.zsh/_kreinlearn      for zsh, in a folder of its fpath
""",
}
