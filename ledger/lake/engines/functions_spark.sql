-- message_text(MESSAGE): as on DuckDB. Spark has no common words for it.
create or replace temporary function message_text(message string) returns string return
with told as (
    select
        try_parse_json(message)                                         as whole,
        try_variant_get(try_parse_json(message), '$.content', 'variant') as content
),
kinds as (
    select
        whole,
        content,
        schema_of_variant(whole)   as kind,
        schema_of_variant(content) as content_kind
    from told
)
select
    case
        when whole is null then message
        when kind = 'STRING' then variant_get(whole, '$', 'string')
        when content_kind = 'STRING' then variant_get(content, '$', 'string')
        when startswith(content_kind, 'ARRAY')
            then array_join(transform(cast(content as array<variant>), part -> try_variant_get(part, '$.text', 'string')), chr(10))
        when startswith(kind, 'ARRAY')
            then array_join(transform(cast(whole as array<variant>), part -> try_variant_get(part, '$.text', 'string')), chr(10))
        else message
    end
from kinds
