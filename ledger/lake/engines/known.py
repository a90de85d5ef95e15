"""What of DuckDB's functions, types and times Spark has under the same name with the same meaning: tried on both."""

from sqlglot import exp

OWN_FUNCTIONS = frozenset({"message_text", "events_on"})
"""Functions of ours, defined on each engine."""

SAME_FUNCTIONS = OWN_FUNCTIONS | {"json_array_length", "now"}
"""Functions that the parser has no class for and both engines have."""

FUNCTIONS = frozenset(
    """
    Abs And ArgMax ArgMin Array ArrayAgg ArrayAppend ArrayContains ArrayDistinct ArrayFilter ArrayMax ArrayMin
    ArraySize ArraySort ArrayToString Avg BitwiseAndAgg BitwiseXorAgg Case Cast Cbrt Ceil Chr Coalesce Concat
    ConcatWs Contains Corr Count CountIf CovarPop CovarSamp CumeDist CurrentDate CurrentTimestamp DateDiff
    DateFromParts Day DenseRank EndsWith Exists Exp Explode Extract Factorial FirstValue Flatten Floor Format
    GenerateSeries Greatest GroupConcat Grouping Hour If IsNan JSONExtract JSONExtractScalar JSONKeys Lag LastDay
    LastValue Lead Least Left Length Levenshtein Ln Log LogicalAnd LogicalOr Lower MD5 Max Median Min Minute Month
    NthValue Ntile Nullif Or Overlay Pad PercentRank Pow Quarter Rank RegexpExtract RegexpExtractAll RegexpLike
    RegexpReplace RegexpSplit RegrR2 RegrSlope Repeat Replace Reverse Right Round RowNumber SHA SHA2 Sign Skewness
    Split SplitPart Sqrt StartsWith Stddev StddevPop StddevSamp StrPosition Struct StructExtract Substring Sum
    TimeToStr TimeToUnix TimestampTrunc Transform Translate Trim Trunc TryCast Unnest Upper Variance VariancePop
    Year
""".split()
)
"""Classes of the parser for functions that mean the same once they are translated: each is tried on both engines."""


def is_known(node: exp.Func) -> bool:
    """Whether a function that the parser knows was found to be the same on both engines."""
    return type(node).__name__ in FUNCTIONS


UNITS = frozenset(
    {"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"}
)
"""Units that times may differ by."""

PARTS = frozenset({"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE"})
"""Parts that may be taken of a time; the others count from elsewhere, or with fractions."""

TIME_CODES = frozenset("YmdHMSf")
"""Letters that may follow a percent sign where a time is written as text."""

WHOLE = frozenset({exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.INT128})
"""Types of whole numbers."""

TEXT = frozenset({exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR})
"""Types of text."""

FRACTIONS = frozenset({exp.DType.DOUBLE, exp.DType.FLOAT})
"""Types of numbers that are not exact."""

TIMES = frozenset(
    {exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ}
)
"""Types of points in time."""

FOREIGN_TYPES = frozenset(
    {
        *(
            exp.DType.TIME,
            exp.DType.TIMETZ,
            exp.DType.TIMESTAMP_S,
            exp.DType.TIMESTAMP_MS,
            exp.DType.TIMESTAMP_NS,
        ),
        *(exp.DType.UTINYINT, exp.DType.USMALLINT, exp.DType.UINT, exp.DType.UBIGINT, exp.DType.UINT128),
        *(exp.DType.INT128, exp.DType.BIT, exp.DType.ENUM, exp.DType.VARIANT, exp.DType.UNION, exp.DType.MAP),
    }
)
"""Types that Spark lacks, or has others under the same name."""

MONEY = frozenset({"cost_usd"})
"""Columns of the lake that are decimals."""

DATES = frozenset({"recorded_date"})
"""Columns of the lake that are dates."""
