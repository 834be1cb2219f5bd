"""An n-gram model: four words predict the next one, through an embedding that the four share.

The text is made here, the same one every time, by a small grammar. Who only knows how frequent each word is has a
loss to beat.
"""

import os

import numpy as np

import common
import trainyard as ty

CONTEXT = 4  # words that predict the next one
WIDTH = 16   # of the embedding

GRAMMAR = {  # a symbol, and what it may become
    "text": ["person verb-p thing .", "thing verb-t place .", "person verb-p thing and verb-p thing .",
             "when thing verb-t place person verb-p thing ."],
    "person": ["the role", "the mood role", "every role"],
    "thing": ["a object", "the colour object", "the object of the role"],
    "place": ["in the site", "near the site", "behind the colour site"],
    "mood": ["old", "young", "tired", "happy"],
    "role": ["driver", "guard", "clerk", "mechanic", "signalman", "passenger"],
    "colour": ["red", "green", "black", "grey"],
    "object": ["engine", "wagon", "lamp", "ticket", "signal", "crane"],
    "site": ["station", "depot", "tunnel", "bridge", "yard"],
    "verb-p": ["sees", "moves", "repairs", "counts", "wants"],
    "verb-t": ["stands", "waits", "rusts", "stops"],
}
WORDS = sorted({word for choices in GRAMMAR.values() for choice in choices for word in choice.split()} - set(GRAMMAR))


def make_text(count, seed):
    """The numbers of so many words."""
    rng = np.random.default_rng(seed)
    numbers = {word: number for number, word in enumerate(WORDS)}
    text = []
    while len(text) < count:
        open_symbols = ["text"]
        while open_symbols:
            symbol = open_symbols.pop()
            if symbol in GRAMMAR:
                open_symbols += reversed(rng.choice(GRAMMAR[symbol]).split())
            else:
                text.append(numbers[symbol])
    return np.array(text[:count])


def grams(text):
    """Each place of the text: the words before it, and the one there."""
    return np.lib.stride_tricks.sliding_window_view(text, CONTEXT + 1)


def loss_by_frequency(train, test):
    """The mean -log of a word's share in the text."""
    shares = (np.bincount(train, minlength=len(WORDS)) + 1) / (len(train) + len(WORDS))
    return float(-np.log(shares[test]).mean())


def build(path, args):
    net = ty.Net("word2vec", seed=1)
    fields = [ty.Field(f"word_{i}", [1], dtype="i64") for i in range(CONTEXT)]
    *words, following = net.read(sources=[path], format="csv", batch_size=args.batch, shuffle_seed=1,
                                 fields=[*fields, ty.Field("next", [1], dtype="i64")])
    table = ty.Param(name="words", init=ty.Uniform(-0.1, 0.1))  # of one name, so it is one table
    embedded = [net.embedding(word, len(WORDS), WIDTH, sparse=True, distributed=args.distributed, weight=table)
                for word in words]
    hidden = net.fc(net.concat(embedded, axis=1), 64, act="tanh")
    loss = net.mean(net.softmax_with_cross_entropy(net.fc(hidden, len(WORDS)), following))
    net.output(loss, every=10)
    net.minimize(loss, ty.Adam(rate=args.rate))
    return common.Model(net.finish(), loss=loss, figure=loss)


def main():
    arguments = common.parser("an n-gram model", name="word2vec", passes=4, batch=32, rate=0.005)
    arguments.add_argument("--distributed", action="store_true", help="the embedding lies on the pservers, row by row")
    arguments.add_argument("--data", default="", help="a folder for the text that pods see too; a temporary one")
    arguments.add_argument("--words", type=int, default=20000, help="of the text to train with")
    args = arguments.parse_args()
    text, test_text = make_text(args.words, seed=1), make_text(5000, seed=2)
    with common.folder_for_data(args.data) as folder:
        path = os.path.join(folder, "grams.csv")
        np.savetxt(path, grams(text), fmt="%d", delimiter=",")
        model = build(path, args)
        executor = common.train(args, model)
    test = grams(test_text)
    feed = {f"word_{i}": test[:, i:i + 1] for i in range(CONTEXT)} | {"next": test[:, CONTEXT:]}
    guessing = loss_by_frequency(text, test[:, CONTEXT])
    print(f"loss of guessing by frequency: {guessing:.4f}")
    common.judge("loss", common.measure(executor, model, feed), below=guessing / 2)


if __name__ == "__main__":
    common.run(main)
