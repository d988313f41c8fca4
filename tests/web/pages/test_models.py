"""Pages and API of the models: the form, the answer, and errors beside the field."""


def test_a_form_shows_its_answer_and_its_errors(looked_at):
    empty = looked_at.get("/models/work-depth")
    assert (empty.status_code, "Answer</h2>" in empty.text, 'role="alert"' in empty.text) == (200, False, False)
    found = looked_at.get("/models/work-depth", work="31", depth="5", processors="1,6", tree="", excess="1")
    assert (found.status_code, "9.333" in found.text, "<svg" in found.text) == (200, True, True)
    wrong = looked_at.get("/models/work-depth", work="<b>", depth="5", processors="1")
    assert wrong.status_code == 400
    assert "&#39;&lt;b&gt;&#39; is not a finite number" in wrong.text
    assert 'value="&lt;b&gt;"' in wrong.text
    assert "depth is 9 but work is 5" in looked_at.get("/models/work-depth", work="5", depth="9").text
    assert looked_at.get("/models/xyzzy").status_code == 404


def test_the_api_gives_the_same(looked_at):
    asked = looked_at.ok("/v1/models/work-depth", work="31", depth="5", processors="1,6")
    body = {"inputs": {"work": 31, "depth": 5, "processors": [1, 6]}}
    post = looked_at.http.post(looked_at.url + "/v1/models/work-depth", json=body).json()
    assert post == asked | {"ok": True} == {"ok": True} | looked_at.ok("/v1/models/work-depth", example="1")
    assert {one["name"] for one in looked_at.ok("/v1/models/list")["calculators"]} >= {"work-depth"}
    assert "no input of 'work-depth' named 'wrk'" in looked_at.refused("/v1/models/work-depth", 400, wrk="1")
    for wrong in ([], {"inputs": []}, {"input": {}}, {"example": 1}):
        assert looked_at.http.post(looked_at.url + "/v1/models/work-depth", json=wrong).status_code == 400
