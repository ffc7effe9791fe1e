"""The experiments of Oglic & Gaertner (ICML 2019), run again: ``kreinlearn reproduce``.

``approximating`` and ``classifying`` measure; each other module is a table or figure of the paper,
made of those measurements; ``expected/`` holds the paper's own numbers.
"""
