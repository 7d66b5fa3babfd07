"""Train examples/models/digits: a small network that recognises handwritten digits of 8 x 8 pixels.

Requires tensorflow and scikit-learn, whose digits data set (1797 images) it uses. Prints the
accuracy on images that were not used for training.
"""

import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

MODEL = pathlib.Path(__file__).parent / "models" / "digits" / "1"
SEED = 7


def network() -> keras.Model:
    """Return the network: `image` [batch, 8, 8], grey values 0..16 → probabilities [batch, 10]."""
    image = keras.Input((8, 8), name="image")
    x = layers.Rescaling(1 / 16)(image)
    x = layers.Reshape((8, 8, 1))(x)
    x = layers.Conv2D(16, 3, activation="relu")(x)
    x = layers.Conv2D(32, 3, activation="relu")(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Dropout(0.25)(layers.Flatten()(x))
    return keras.Model(image, layers.Dense(10, activation="softmax", name="probabilities")(x))


def main() -> None:
    keras.utils.set_random_seed(SEED)
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8).astype(np.float32)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=0.25, random_state=SEED, stratify=labels
    )
    model = network()
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(train_x, train_y, batch_size=32, epochs=40, verbose=0)
    _, accuracy = model.evaluate(test_x, test_y, verbose=0)
    print(f"test accuracy {accuracy:.4f} on {len(test_y)} images, {model.count_params()} weights")
    model.export(str(MODEL), verbose=False)
    print(f"wrote {MODEL}")


if __name__ == "__main__":
    main()
