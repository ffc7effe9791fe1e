"""From a feature map to a model: folds, penalties, losses and codings."""
