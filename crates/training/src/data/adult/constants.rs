//! The public constants of the Adult encoding.
//!
//! They describe the published training file (32,561 records): means and sample deviations of its
//! six numbers, and how many of its records have each category. They are part of the data set's
//! public description, fixed here, and are never computed from the records of a run; on records
//! of your own, constants computed from them would be a release that no accountant sees.

/// Records of the published training file.
pub(super) const TRAINING_RECORDS: usize = 32_561;

/// (name, place among the 15 columns, mean, deviation).
pub(super) const NUMBERS: [(&str, usize, f64, f64); 6] = [
    ("age", 0, 38.5816, 13.6404),
    ("fnlwgt", 2, 189_778.366_5, 105_549.977_7),
    ("education-num", 4, 10.0807, 2.5727),
    ("capital-gain", 10, 1_077.648_8, 7_385.292_1),
    ("capital-loss", 11, 87.3038, 402.9602),
    ("hours-per-week", 12, 40.4375, 12.3474),
];

/// A column of words: its place among the 15, and each value with its records in the published
/// training file.
pub(super) struct Category {
    pub(super) name: &'static str,
    pub(super) values: &'static [(&'static str, u32)],
}

pub(super) const CATEGORIES: [Category; 8] = [
    Category {
        name: "workclass",
        values: &[
            ("?", 1836),
            ("Federal-gov", 960),
            ("Local-gov", 2093),
            ("Never-worked", 7),
            ("Private", 22696),
            ("Self-emp-inc", 1116),
            ("Self-emp-not-inc", 2541),
            ("State-gov", 1298),
            ("Without-pay", 14),
        ],
    },
    Category {
        name: "education",
        values: &[
            ("10th", 933),
            ("11th", 1175),
            ("12th", 433),
            ("1st-4th", 168),
            ("5th-6th", 333),
            ("7th-8th", 646),
            ("9th", 514),
            ("Assoc-acdm", 1067),
            ("Assoc-voc", 1382),
            ("Bachelors", 5355),
            ("Doctorate", 413),
            ("HS-grad", 10501),
            ("Masters", 1723),
            ("Preschool", 51),
            ("Prof-school", 576),
            ("Some-college", 7291),
        ],
    },
    Category {
        name: "marital-status",
        values: &[
            ("Divorced", 4443),
            ("Married-AF-spouse", 23),
            ("Married-civ-spouse", 14976),
            ("Married-spouse-absent", 418),
            ("Never-married", 10683),
            ("Separated", 1025),
            ("Widowed", 993),
        ],
    },
    Category {
        name: "occupation",
        values: &[
            ("?", 1843),
            ("Adm-clerical", 3770),
            ("Armed-Forces", 9),
            ("Craft-repair", 4099),
            ("Exec-managerial", 4066),
            ("Farming-fishing", 994),
            ("Handlers-cleaners", 1370),
            ("Machine-op-inspct", 2002),
            ("Other-service", 3295),
            ("Priv-house-serv", 149),
            ("Prof-specialty", 4140),
            ("Protective-serv", 649),
            ("Sales", 3650),
            ("Tech-support", 928),
            ("Transport-moving", 1597),
        ],
    },
    Category {
        name: "relationship",
        values: &[
            ("Husband", 13193),
            ("Not-in-family", 8305),
            ("Other-relative", 981),
            ("Own-child", 5068),
            ("Unmarried", 3446),
            ("Wife", 1568),
        ],
    },
    Category {
        name: "race",
        values: &[
            ("Amer-Indian-Eskimo", 311),
            ("Asian-Pac-Islander", 1039),
            ("Black", 3124),
            ("Other", 271),
            ("White", 27816),
        ],
    },
    Category { name: "sex", values: &[("Female", 10771), ("Male", 21790)] },
    Category {
        name: "native-country",
        values: &[
            ("?", 583),
            ("Cambodia", 19),
            ("Canada", 121),
            ("China", 75),
            ("Columbia", 59),
            ("Cuba", 95),
            ("Dominican-Republic", 70),
            ("Ecuador", 28),
            ("El-Salvador", 106),
            ("England", 90),
            ("France", 29),
            ("Germany", 137),
            ("Greece", 29),
            ("Guatemala", 64),
            ("Haiti", 44),
            ("Holand-Netherlands", 1),
            ("Honduras", 13),
            ("Hong", 20),
            ("Hungary", 13),
            ("India", 100),
            ("Iran", 43),
            ("Ireland", 24),
            ("Italy", 73),
            ("Jamaica", 81),
            ("Japan", 62),
            ("Laos", 18),
            ("Mexico", 643),
            ("Nicaragua", 34),
            ("Outlying-US(Guam-USVI-etc)", 14),
            ("Peru", 31),
            ("Philippines", 198),
            ("Poland", 60),
            ("Portugal", 37),
            ("Puerto-Rico", 114),
            ("Scotland", 12),
            ("South", 80),
            ("Taiwan", 51),
            ("Thailand", 18),
            ("Trinadad&Tobago", 19),
            ("United-States", 29170),
            ("Vietnam", 67),
            ("Yugoslavia", 16),
        ],
    },
];
