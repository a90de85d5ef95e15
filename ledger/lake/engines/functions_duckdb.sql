-- message_text(MESSAGE): what a person reads of a message, or of anything else that `text` holds: its words, without JSON.
create macro message_text(message) as
case
    when not json_valid(message) then message
    when json_type(message) = 'VARCHAR' then json_extract_string(message, '$')
    when json_type(message, '$.content') = 'VARCHAR' then json_extract_string(message, '$.content')
    when json_type(message, '$.content') = 'ARRAY'
        then array_to_string(json_extract_string(message, '$.content[*].text'), chr(10))
    when json_type(message) = 'ARRAY' then array_to_string(json_extract_string(message, '$[*].text'), chr(10))
    else message
end;
