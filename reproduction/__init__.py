"""The experiments of Oglic & Gaertner (ICML 2019), run again: ``python -m reproduction``.

Each part of the reproduction is a module with two functions: ``tasks`` says what is measured, and
``section`` makes a section of the report from the measurements. The modules are listed in
``scale``. What several parts measure is in ``approximating`` and ``classifying``. The words of the
report are in ``prose.toml``, and the paper's own numbers in the folder ``expected``.
"""
