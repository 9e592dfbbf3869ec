rule report:
    input:
        "<results>/data/data_card.md",
