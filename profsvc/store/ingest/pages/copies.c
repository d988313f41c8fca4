/* Lays out columns as rows of a binary COPY of Postgres, without Python objects.

   `rows` writes what `profsvc.store.ingest.inserts.postgres_copy` describes and makes with NumPy, byte by byte.

   Rules of this file: every read lies in a column, whose size was compared with the number of rows, or in a text, whose
   bounds were compared with the bytes of all texts; every write lies in the buffer, whose size is compared with that of
   all rows before the first; the interpreter's lock is released meanwhile. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdint.h>
#include <string.h>

#define INTERFACE 1
#define MAX_COLUMNS 64
#define HEAD_BYTES 2   /* of a row: how many fields it has */
#define LENGTH_BYTES 4 /* of a field: how many bytes it has, -1 for null */
#define WORD_BYTES 8

enum { TEXT = 0 }; /* the width of a column of texts */
enum { NO_ROOM = -1, TOO_LARGE = -2, NO_TEXT = -3 };
enum { VALUES, MISSING, BYTES, ENDS, BUFFERS };

typedef struct {
    int width;             /* bytes of a number, or TEXT */
    const int64_t *values; /* numbers, doubles as their bits, or which text */
    const uint8_t *missing; /* NULL if no value is */
    const char *bytes;     /* the texts, one behind another */
    const int64_t *ends;   /* where each ends */
    Py_ssize_t texts;
    Py_buffer buffers[BUFFERS];
} Column;

/* Writes the last `size` bytes of a word, the highest first. */
static inline uint8_t *put(uint8_t *place, uint64_t word, int size)
{
#if defined(__BYTE_ORDER__) && defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word << 8 * (WORD_BYTES - size));
    memcpy(place, &word, (size_t)size);
#else
    int byte;
    for (byte = 0; byte < size; byte++)
        place[byte] = (uint8_t)(word >> 8 * (size - 1 - byte));
#endif
    return place + size;
}

static int64_t begin_of(const Column *column, int64_t text) { return text ? column->ends[text - 1] : 0; }

static int fits(int64_t value, int width)
{
    int64_t most = width < WORD_BYTES ? ((int64_t)1 << (8 * width - 1)) - 1 : INT64_MAX;
    return value <= most && value >= -most - 1;
}

/* Returns the bytes of all values of a column, or why it cannot be written. */
static Py_ssize_t size_of(const Column *column, Py_ssize_t rows)
{
    Py_ssize_t row, size = 0;
    if (column->width == WORD_BYTES && !column->missing)
        return rows * WORD_BYTES;
    for (row = 0; row < rows; row++) {
        int64_t value = column->values[row];
        if (column->missing && column->missing[row])
            continue;
        if (column->width != TEXT) {
            if (!fits(value, column->width))
                return TOO_LARGE;
            size += column->width;
        } else if (value < 0 || value >= column->texts)
            return NO_TEXT;
        else
            size += (Py_ssize_t)(column->ends[value] - begin_of(column, value));
    }
    return size;
}

static uint8_t *put_field(const Column *column, Py_ssize_t row, uint8_t *place)
{
    int64_t value = column->values[row];
    if (column->missing && column->missing[row])
        return put(place, UINT32_MAX, LENGTH_BYTES);
    if (column->width == TEXT) {
        int64_t begin = begin_of(column, value), size = column->ends[value] - begin;
        place = put(place, (uint64_t)size, LENGTH_BYTES);
        memcpy(place, column->bytes + begin, (size_t)size);
        return place + size;
    }
    place = put(place, (uint64_t)column->width, LENGTH_BYTES);
    if (column->width == WORD_BYTES) /* a width that is known is a single instruction */
        return put(place, (uint64_t)value, WORD_BYTES);
    return put(place, (uint64_t)value, column->width);
}

/* Returns how many bytes were written, or why none were. */
static Py_ssize_t write_rows(const Column *column, int columns, Py_ssize_t rows, uint8_t *place, Py_ssize_t room)
{
    Py_ssize_t size = rows * (HEAD_BYTES + columns * LENGTH_BYTES), row;
    int number;
    for (number = 0; number < columns; number++) {
        Py_ssize_t own = size_of(&column[number], rows);
        if (own < 0)
            return own;
        size += own;
    }
    if (size > room)
        return NO_ROOM;
    for (row = 0; row < rows; row++) {
        place = put(place, (uint64_t)columns, HEAD_BYTES);
        for (number = 0; number < columns; number++)
            place = put_field(&column[number], row, place);
    }
    return size;
}

static int take_buffer(Column *column, int which, PyObject *given, Py_ssize_t least)
{
    if (given == Py_None)
        return 1;
    if (PyObject_GetBuffer(given, &column->buffers[which], PyBUF_SIMPLE) < 0)
        return 0;
    if (column->buffers[which].len >= least)
        return 1;
    PyErr_SetString(PyExc_ValueError, "a column is shorter than the number of rows");
    return 0;
}

static int take_texts(Column *column)
{
    Py_ssize_t text, texts = column->buffers[ENDS].len / WORD_BYTES;
    const int64_t *ends = column->buffers[ENDS].buf;
    for (text = 0; text < texts; text++)
        if (ends[text] < (text ? ends[text - 1] : 0) || ends[text] > column->buffers[BYTES].len ||
            ends[text] - (text ? ends[text - 1] : 0) > INT32_MAX) {
            PyErr_SetString(PyExc_ValueError, "a text does not end in the bytes of the texts");
            return 0;
        }
    column->bytes = column->buffers[BYTES].buf;
    column->ends = ends;
    column->texts = texts;
    return 1;
}

static int take_column(Column *column, PyObject *given, Py_ssize_t rows)
{
    PyObject *values, *missing, *bytes, *ends;
    if (!PyArg_ParseTuple(given, "iOOOO", &column->width, &values, &missing, &bytes, &ends))
        return 0;
    if (column->width != TEXT && column->width != 2 && column->width != 4 && column->width != WORD_BYTES) {
        PyErr_SetString(PyExc_ValueError, "a number has 2, 4 or 8 bytes");
        return 0;
    }
    if (!take_buffer(column, VALUES, values, rows * WORD_BYTES) || !take_buffer(column, MISSING, missing, rows) ||
        !take_buffer(column, BYTES, bytes, 0) || !take_buffer(column, ENDS, ends, 0))
        return 0;
    column->values = column->buffers[VALUES].buf;
    column->missing = column->buffers[MISSING].buf;
    if (rows && !column->values) {
        PyErr_SetString(PyExc_ValueError, "a column is shorter than the number of rows");
        return 0;
    }
    return take_texts(column);
}

PyDoc_STRVAR(rows_doc,
             "rows(rows, columns, target) -> int\n\n"
             "Write rows in the format of COPY; return how many bytes they have.\n\n"
             "A column is (bytes of a number, or 0 for texts; 64-bit values, or which text; missing or None;\n"
             "the bytes of all texts or None; where each text ends or None).");

static PyObject *rows_function(PyObject *module, PyObject *args)
{
    /* in the order of NO_ROOM, TOO_LARGE and NO_TEXT */
    static const char *const WHY[] = {
        "there is no room for the rows", "a number does not fit", "there is no such text"};
    Py_buffer target = {0};
    PyObject *given, *found = NULL;
    Column *column = NULL;
    Py_ssize_t rows, taken = 0, columns, written;
    int which;
    PyThreadState *thread;
    (void)module;
    if (!PyArg_ParseTuple(args, "nO!w*:rows", &rows, &PyTuple_Type, &given, &target))
        return NULL;
    columns = PyTuple_Size(given);
    if (columns > MAX_COLUMNS || rows < 0 || rows > PY_SSIZE_T_MAX / (WORD_BYTES * 2 * (MAX_COLUMNS + 1))) {
        PyErr_SetString(PyExc_ValueError, "too many columns or rows");
        goto released;
    }
    column = PyMem_Calloc((size_t)columns + 1, sizeof *column);
    if (!column) {
        PyErr_NoMemory();
        goto released;
    }
    for (; taken < columns; taken++)
        if (!take_column(&column[taken], PyTuple_GetItem(given, taken), rows)) {
            taken++;
            goto released;
        }
    thread = PyEval_SaveThread();
    written = write_rows(column, (int)columns, rows, target.buf, target.len);
    PyEval_RestoreThread(thread);
    if (written < 0)
        PyErr_SetString(PyExc_ValueError, WHY[-written - 1]);
    else
        found = PyLong_FromSsize_t(written);
released:
    while (taken-- > 0)
        for (which = 0; which < BUFFERS; which++)
            PyBuffer_Release(&column[taken].buffers[which]);
    PyMem_Free(column);
    PyBuffer_Release(&target);
    return found;
}

static PyMethodDef METHODS[] = {
    {"rows", rows_function, METH_VARARGS, rows_doc},
    {NULL, NULL, 0, NULL},
};

static int set_up(PyObject *module) { return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE); }

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, (void *)set_up}, {0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_copies",
    .m_doc = "Columns to rows of a binary COPY.",
    .m_methods = METHODS,
    .m_slots = SLOTS,
};

PyMODINIT_FUNC PyInit__copies(void) { return PyModuleDef_Init(&MODULE); }
