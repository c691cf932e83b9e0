"""A record's field is asked for by the label that its mapping gives it."""

from api.answering.fields import field_labels
from pipeline.mapping import Mappings
from schemas.mapping import FieldSpec, Mapping


def test_the_label_of_the_mapping_comes_before_the_columns_name() -> None:
    fields = {
        "price": FieldSpec(type="decimal", column="kakaku", label="購入価格"),
        "place": FieldSpec(column="設置場所"),
        "model": FieldSpec(),
    }
    mapping = Mapping(source="erp", collection="machines", title="{no}", body=("{no}",), fields=fields)
    labels = field_labels(Mappings([mapping]), "erp/machines/1")
    assert labels == {"price": "購入価格", "place": "設置場所", "model": "model"}
