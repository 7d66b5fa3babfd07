from server.rest.docs_page import docs_page

SCHEMA = {
    "info": {"title": "Runstep", "version": "1"},
    "paths": {
        "/x": {
            "post": {
                "summary": "a < b",
                "parameters": [
                    {"name": "id", "in": "path"},
                    {"name": "label", "in": "path", "example": "a&b"},
                ],
                "requestBody": {
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Body"}},
                        "text/plain": {"examples": {"one": {"value": "<script>"}}},
                    }
                },
                "responses": {"404": {"description": "none such"}},
            }
        }
    },
    "components": {"schemas": {"Body": {"type": "object"}}},
}


def test_a_call_is_shown_with_parameters_bodies_and_answers():
    page = docs_page(SCHEMA)
    assert "<b>POST</b> <code>/x</code> a &lt; b</summary>" in page
    assert "<code>id</code> (path)" in page
    assert "<code>label</code> (path) such as <code>a&amp;b</code>" in page
    assert "<pre>{\n  &quot;type&quot;: &quot;object&quot;\n}</pre>" in page
    assert "<code>404</code> none such" in page


def test_what_the_document_says_is_text_not_markup():
    assert "<script" not in docs_page(SCHEMA)
