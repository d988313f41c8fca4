/* Splits rows of delimited text into typed columns, in one pass and without Python objects.

   `split` fills arrays of its caller, one row of the text after another, and stops before the first row that is not
   plain: another number of cells, a number in another form, a quote or a line end inside a cell, blanks around one.
   Whoever calls it reads such a row in another way. So nothing is guessed here, and what is filled in is exact.

   Rules of this file: every read lies in [begin, end), whose last byte is a line end; every write lies in a buffer
   whose size was compared with the number of rows; memory is taken for distinct texts only, as they are met, and never
   by a number of the text; nothing recurses; the interpreter's lock is released while rows are read. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#if FLT_EVAL_METHOD != 0
#error "doubles are rounded twice here, so that numbers would differ from those of the other readers"
#endif

#define INTERFACE 3
#define MAX_COLUMNS 65536
#define MAX_INT_DIGITS 18
#define MAX_DIGITS 19
#define MAX_DECIMALS 127
#define FRACTION_DIGITS 9
#define MAX_STRICT 20 /* characters of a number of a strict kind */
#define MAX_EXACT 9007199254740992u /* 2^53: larger mantissas may be rounded twice */
#define MAX_POWER 22                /* 10^22 is the largest power of ten that a double holds exactly */
#define MAX_EXPONENT 9999
#define MAX_PROBES 64
#define ROUNDED_BELOW 8589934592.0 /* 2^33: above it six decimals of a double are no more than noise */
#define MAX_SHIFTED 4503599627370496.0 /* 2^52: doubles from here on are integers */
#define FIRST_SLOTS 64

enum {
    SKIP = 's',
    INTEGER = 'i',
    REAL = 'r',
    PLAIN = 'p',
    WHOLE = 'w',
    DECIMAL = 'd',
    CLOCK = 't',
    TEXT = 'c',
    NUMBERED = 'n',
    VALUE = 'v'
};

typedef struct {
    const char *text;
    Py_ssize_t size;
    uint32_t hash;
} Entry;

/* The distinct texts of a column in the order in which they are met. */
typedef struct {
    Entry *entries;
    int32_t *slots; /* a code plus 1; 0 is free */
    int32_t count;
    uint32_t mask;
    int32_t last; /* the code of the row before */
} Texts;

typedef struct {
    int kind;
    int rounded; /* to six decimals */
    void *values, *extra;
    uint8_t *missing;
    double factor, least, most;
    const char *suffix; /* follows each number */
    Py_ssize_t suffix_size;
    Texts texts;
    Py_buffer buffers[3]; /* of values, missing and extra */
} Column;

typedef struct {
    const char *begin, *end;
    Py_ssize_t rows;
    int columns;
    Column *column;
    char separator, decimal;
    int blanks; /* whether a blank may follow a separator */
    int quoted, least; /* whether every cell must be quoted; how many cells a row must have */
    int stopped; /* the column of the cell that is not plain; -1 if all are, or the end of a row is not */
    int no_memory;
} Job;

static const double POWERS[MAX_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* ---- Distinct texts ---- */

static uint32_t hash_of(const char *text, Py_ssize_t size)
{
    uint64_t hash = 0x9E3779B97F4A7C15u ^ (uint64_t)size, other = 0, word, next;
    for (; size >= 16; text += 16, size -= 16) {
        memcpy(&word, text, 8);
        memcpy(&next, text + 8, 8);
        hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
        other = (other ^ next) * 0xA0761D6478BD642Fu;
        hash ^= hash >> 32;
        other ^= other >> 32;
    }
    hash ^= other * 0x9E3779B97F4A7C15u;
    if (size >= 8) {
        memcpy(&word, text, 8);
        hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
        hash ^= hash >> 32;
        text += 8;
        size -= 8;
    }
    word = 0;
    memcpy(&word, text, (size_t)size);
    hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
    hash *= 0xD6E8FEB86659FD93u;
    return (uint32_t)(hash >> 32);
}

static int same(const Entry *entry, const char *text, Py_ssize_t size)
{
    return entry->size == size && memcmp(entry->text, text, (size_t)size) == 0;
}

/* Makes room for one more text; 0 if there is no memory. */
static int grow(Texts *texts)
{
    uint32_t slots = texts->entries ? 2 * (texts->mask + 1) : FIRST_SLOTS, at;
    int32_t code, *wider;
    Entry *entries;
    if (texts->entries && (uint32_t)texts->count < (texts->mask + 1) / 2)
        return 1;
    if (slots > (1u << 30))
        return 0;
    entries = realloc(texts->entries, (slots / 2) * sizeof *entries);
    if (!entries)
        return 0;
    texts->entries = entries;
    wider = calloc(slots, sizeof *wider);
    if (!wider)
        return 0;
    free(texts->slots);
    texts->slots = wider;
    texts->mask = slots - 1;
    for (code = 0; code < texts->count; code++) {
        for (at = entries[code].hash & texts->mask; wider[at]; at = (at + 1) & texts->mask)
            ;
        wider[at] = code + 1;
    }
    return 1;
}

/* Returns the code of a text; -1 if too many texts collide or there is no memory. */
static int32_t code_of(Texts *texts, const char *text, Py_ssize_t size, int *no_memory)
{
    uint32_t hash, at;
    int probes;
    if (texts->count && same(&texts->entries[texts->last], text, size))
        return texts->last;
    if (!grow(texts)) {
        *no_memory = 1;
        return -1;
    }
    hash = hash_of(text, size);
    at = hash & texts->mask;
    for (probes = 0; probes < MAX_PROBES; probes++, at = (at + 1) & texts->mask) {
        int32_t code = texts->slots[at] - 1;
        if (code < 0) {
            code = texts->count++;
            texts->entries[code] = (Entry){text, size, hash};
            texts->slots[at] = code + 1;
        } else if (texts->entries[code].hash != hash || !same(&texts->entries[code], text, size))
            continue;
        return texts->last = code;
    }
    return -1;
}

/* ---- Cells ---- */

static int is_digit(char sign) { return (unsigned char)(sign - '0') < 10; }

typedef struct {
    uint64_t digits; /* without the decimal sign */
    int count;       /* of digits that signify */
    int decimals;
    int exponent;
    int negative;
    int empty;
} Number;

static const char *read_digits(const char *place, Number *number)
{
    while (*place == '0' && !number->digits)
        place++; /* zeros before a number do not signify */
    for (; is_digit(*place); place++)
        if (++number->count <= MAX_DIGITS)
            number->digits = number->digits * 10 + (uint64_t)(*place - '0');
    return place;
}

/* Reads a number of any length; returns what follows it, or NULL if it has another form. */
static const char *read_long_number(const char *place, char decimal, int exponents, Number *number)
{
    const char *start;
    int any, pointed = 0;
    memset(number, 0, sizeof *number);
    if (*place == '-') {
        number->negative = 1;
        place++;
    }
    start = place;
    place = read_digits(place, number);
    any = place > start;
    if (decimal && *place == decimal) {
        pointed = 1;
        start = ++place;
        place = read_digits(place, number);
        any |= place > start;
        if (place - start > MAX_EXPONENT)
            return NULL;
        number->decimals = (int)(place - start);
    }
    if (!any) {
        number->empty = 1;
        return number->negative || pointed ? NULL : place;
    }
    if (exponents && (*place == 'e' || *place == 'E')) {
        int below = 0;
        place++;
        if (*place == '+' || *place == '-')
            below = *place++ == '-';
        if (!is_digit(*place))
            return NULL;
        for (; is_digit(*place); place++) {
            number->exponent = number->exponent * 10 + (*place - '0');
            if (number->exponent > MAX_EXPONENT)
                return NULL;
        }
        if (below)
            number->exponent = -number->exponent;
    }
    return number->count > MAX_DIGITS ? NULL : place;
}

#if defined(__BYTE_ORDER__) && defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static const uint64_t TENS[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/* Returns how many of the next eight bytes are digits, and their value, without a branch for each. */
static inline int next_digits(const char *place, uint64_t *value)
{
    uint64_t word, other;
    int count;
    memcpy(&word, place, 8);
    word ^= 0x3030303030303030u;
    other = (((word & 0x7F7F7F7F7F7F7F7Fu) + 0x7676767676767676u) | word) & 0x8080808080808080u;
    count = other ? __builtin_ctzll(other) / 8 : 8;
    word = count ? word << (64 - 8 * count) : 0;
    word = word * 10 + (word >> 8);
    other = (word >> 16) & 0xFF000000FFu;
    *value = ((word & 0xFF000000FFu) * 0x000F424000000064u + other * 0x0000271000000001u) >> 32;
    return count;
}

/* Up to 16 digits; the value is added to `value` behind its own digits. */
static inline int next_16_digits(const char *place, uint64_t *value)
{
    uint64_t part;
    int count = next_digits(place, &part);
    *value = *value * TENS[count] + part;
    if (count == 8) {
        int more = next_digits(place + 8, &part);
        *value = *value * TENS[more] + part;
        count += more;
    }
    return count;
}

/* Reads a number; returns what follows it, or NULL if it has another form. The byte before `end` is a line end. */
static inline const char *read_number(const char *place, const char *end, char decimal, int exponents, Number *number)
{
    const char *start = place;
    uint64_t digits = 0;
    int count = 0, decimals = 0;
    if (end - place > 40 && *place != '-') {
        count = next_16_digits(place, &digits);
        place += count;
        if (decimal && *place == decimal && count) {
            decimals = next_16_digits(place + 1, &digits);
            place += 1 + decimals;
        }
        count += decimals;
        if (count <= MAX_INT_DIGITS && !is_digit(*place) && (count || *place != decimal) &&
            !(exponents && (*place | 0x20) == 'e')) {
            *number = (Number){digits, count, decimals, 0, 0, count == 0};
            return place;
        }
    }
    return read_long_number(start, decimal, exponents, number);
}
#else
#define read_number(place, end, decimal, exponents, number) read_long_number(place, decimal, exponents, number)
#endif

/* The double next to a number, as one division or product of exact doubles gives it; 0 if that is not enough. */
static int nearest(const Number *number, double *value)
{
    uint64_t digits = number->digits;
    int power = number->exponent - number->decimals;
    while (digits > MAX_EXACT && digits % 10 == 0) {
        digits /= 10;
        power++;
    }
    if (digits == 0)
        power = 0;
    if (digits > MAX_EXACT || power > MAX_POWER || power < -MAX_POWER)
        return 0;
    *value = power < 0 ? (double)digits / POWERS[-power] : (double)digits * POWERS[power];
    if (number->negative)
        *value = -*value;
    return 1;
}

/* The integer next to a number that is not negative, the even one of two, as rint. */
static double nearest_integer(double value)
{
    double shifted = value + MAX_SHIFTED;
    return value < MAX_SHIFTED ? shifted - MAX_SHIFTED : value;
}

static int is_number(int kind)
{
    return kind == INTEGER || kind == REAL || kind == PLAIN || kind == WHOLE || kind == DECIMAL;
}

/* Stores a number of a column, 0 for an empty cell; returns 0 if it is not plain there. */
static int store_number(Column *column, Py_ssize_t row, const Number *number)
{
    double value = 0.0;
    column->missing[row] = (uint8_t)number->empty;
    if (column->kind == INTEGER || column->kind == DECIMAL) {
        int64_t digits;
        if (number->digits > INT64_MAX || number->decimals > MAX_DECIMALS)
            return 0;
        digits = number->negative ? -(int64_t)number->digits : (int64_t)number->digits;
        ((int64_t *)column->values)[row] = digits;
        if (column->kind == DECIMAL)
            ((int8_t *)column->extra)[row] = (int8_t)number->decimals;
        return number->empty || ((double)digits >= column->least && (double)digits <= column->most);
    }
    if (!number->empty) {
        if (!nearest(number, &value))
            return 0;
        value *= column->factor;
        if (column->rounded && value >= 0 && value < ROUNDED_BELOW)
            value = nearest_integer(value * 1e6) / 1e6;
        if (!(value >= column->least && value <= column->most))
            return 0;
    }
    if (column->kind == REAL || column->kind == PLAIN)
        ((double *)column->values)[row] = value;
    else
        ((int64_t *)column->values)[row] = (int64_t)nearest_integer(value);
    return 1;
}

/* Returns the first byte that is a quote, a control character or `stop`; the last byte is a line end. */
static const char *find_stop_in_words(const char *place, const char *end, char stop)
{
    const uint64_t low = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t quotes = low * (unsigned char)'"', stops = low * (unsigned char)stop, word, found;
    while (end - place > 8) {
        memcpy(&word, place, 8);
        found = (word - low * 0x20) & ~word;
        found |= ((word ^ quotes) - low) & ~(word ^ quotes);
        found |= ((word ^ stops) - low) & ~(word ^ stops);
        if (found & high)
            break;
        place += 8;
    }
    while ((unsigned char)*place >= 0x20 && *place != '"' && *place != stop)
        place++;
    return place;
}

static inline const char *find_stop(const char *place, const char *end, char stop)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), other = _mm_set1_epi8(stop), control = _mm_set1_epi8(0x1F);
    while (end - place > 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)place);
        __m128i stops = _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, other));
        int mask;
        stops = _mm_or_si128(stops, _mm_cmpeq_epi8(_mm_min_epu8(bytes, control), bytes));
        mask = _mm_movemask_epi8(stops);
        if (mask)
            return place + __builtin_ctz((unsigned)mask);
        place += 16;
    }
#endif
    return find_stop_in_words(place, end, stop);
}

/* The number in brackets at the end of a name, `saxpy [12]` or `launch (saxpy [12])`; -1 if it has too many digits. */
static int64_t bracketed(const char *text, Py_ssize_t size, Py_ssize_t *without)
{
    Py_ssize_t last = size - 1, first;
    int64_t number = 0;
    int call = size > 1 && text[last] == ')' && text[last - 1] == ']';
    *without = size;
    last -= call;
    if (size < 5 || text[0] == '[' || text[last] != ']')
        return 0;
    for (first = last; first > 0 && is_digit(text[first - 1]); first--)
        if (last - first >= MAX_INT_DIGITS)
            return -1;
    if (first == last || first < 3 || text[first - 1] != '[' || text[first - 2] != ' ')
        return 0;
    *without = call ? -size : first - 2;
    for (; first < last; first++)
        number = number * 10 + (text[first] - '0');
    return number;
}

/* Stores where a cell lies and its number; NaN if it is not a plain one. */
static void store_value(const Job *job, Column *column, Py_ssize_t row, const char *place, const char *stop)
{
    Number number;
    double value;
    char decimal = *stop == job->decimal ? 0 : job->decimal;
    int plain = stop - place <= MAX_STRICT && is_digit(place[*place == '-']) && is_digit(stop[-1]) &&
                read_number(place, job->end, decimal, 0, &number) == stop && nearest(&number, &value);
    ((double *)column->values)[row] = plain ? value : NAN;
    ((int32_t *)column->extra)[2 * row] = (int32_t)(place - job->begin);
    ((int32_t *)column->extra)[2 * row + 1] = (int32_t)(stop - job->begin);
}

static int store_text(Job *job, Column *column, Py_ssize_t row, const char *text, Py_ssize_t size)
{
    int32_t code;
    if (column->kind == NUMBERED) {
        Py_ssize_t without;
        int64_t number = bracketed(text, size, &without);
        if (number < 0)
            return 0;
        ((int64_t *)column->extra)[row] = number;
        column->missing[row] = without == size;
        if (without > 0)
            size = without;
    }
    code = code_of(&column->texts, text, size, &job->no_memory);
    ((int32_t *)column->values)[row] = code;
    return code >= 0;
}

/* ---- Times of the day ---- */

/* Reads two digits; -1 if there are none. The second is read only behind a digit, so within the block. */
static int read_pair(const char **place)
{
    const char *at = *place;
    if (!is_digit(at[0]) || !is_digit(at[1]))
        return -1;
    *place += 2;
    return 10 * (at[0] - '0') + (at[1] - '0');
}

/* Reads 9:05:01.25, or a date before it: stores the ns of the day and the code of the date, which may be empty. */
static const char *read_clock(Job *job, Column *column, Py_ssize_t row, const char *place, char stop)
{
    const char *start = place;
    Py_ssize_t date = 0;
    int64_t fraction = 0;
    int hours, minutes, seconds, digits = 0;
    int32_t code;
    while (*place != stop && (is_digit(*place) || *place == '-' || *place == '/' || *place == '.'))
        place++;
    if (*place == ':')
        place = start;
    else if (*place == stop || (*place != ' ' && *place != 'T') || place == start)
        return NULL;
    else
        date = place++ - start;
    if (is_digit(*place) && place[1] == ':')
        hours = *place++ - '0';
    else
        hours = read_pair(&place);
    if (hours < 0 || hours > 23 || *place++ != ':')
        return NULL;
    minutes = read_pair(&place);
    if (minutes < 0 || minutes > 59 || *place++ != ':')
        return NULL;
    seconds = read_pair(&place);
    if (seconds < 0 || seconds > 59)
        return NULL;
    if ((*place == '.' || *place == ',') && *place != stop) {
        for (place++; is_digit(*place); place++)
            if (++digits <= FRACTION_DIGITS)
                fraction = fraction * 10 + (*place - '0');
        if (digits < 1 || digits > FRACTION_DIGITS)
            return NULL;
        for (; digits < FRACTION_DIGITS; digits++)
            fraction *= 10;
    }
    code = code_of(&column->texts, start, date, &job->no_memory);
    ((int32_t *)column->extra)[row] = code;
    ((int64_t *)column->values)[row] = ((hours * 60 + minutes) * 60 + seconds) * (int64_t)1000000000 + fraction;
    return code < 0 ? NULL : place;
}

/* ---- Rows ---- */

static int is_blank(char sign) { return sign == ' ' || sign == '\t'; }

/* Reads a number with what follows it; NULL if it is not plain. */
static const char *read_measure(const Job *job, Column *column, Py_ssize_t row, const char *place, int quoted)
{
    const char *start = place;
    Number number;
    Py_ssize_t at;
    int kind = column->kind, strict = kind == PLAIN || kind == DECIMAL, sign;
    char decimal = kind == INTEGER || (!quoted && job->decimal == job->separator) ? 0 : job->decimal;
    place = read_number(place, job->end, decimal, kind == REAL || kind == WHOLE, &number);
    if (!place || !store_number(column, row, &number))
        return NULL;
    if (number.empty)
        return place;
    sign = kind == DECIMAL && *start == '-' && column->least < 0;
    if (strict && (!is_digit(start[sign]) || !is_digit(place[-1]) || place - start - sign > MAX_STRICT))
        return NULL;
    /* No suffix has a line end, which is the last byte. */
    for (at = 0; at < column->suffix_size; at++)
        if (*place++ != column->suffix[at])
            return NULL;
    return place;
}

/* Reads a cell; returns what follows it, or NULL if it is not plain. */
static const char *read_cell(Job *job, Column *column, Py_ssize_t row, const char *place)
{
    const char *start;
    char stop;
    int quoted;
    if (job->blanks && *place == ' ')
        place++;
    quoted = *place == '"';
    if (job->quoted && !quoted)
        return NULL;
    place += quoted;
    start = place;
    stop = quoted ? '"' : job->separator;
    if (is_number(column->kind))
        place = read_measure(job, column, row, place, quoted);
    else if (column->kind == CLOCK)
        place = read_clock(job, column, row, place, stop);
    else {
        place = find_stop(place, job->end, stop);
        while (*place == '\t' && stop != '\t')
            place = find_stop(place + 1, job->end, stop);
        if (!quoted && place > start && (is_blank(*start) || is_blank(place[-1])))
            return NULL;
        if (column->kind == VALUE)
            store_value(job, column, row, start, place);
        else if (column->kind != SKIP && !store_text(job, column, row, start, place - start))
            return NULL;
    }
    if (place && quoted)
        return *place == '"' ? place + 1 : NULL;
    return place;
}

/* Returns the number of plain rows at the beginning. */
static Py_ssize_t read_rows(Job *job)
{
    const char *place = job->begin;
    Py_ssize_t row;
    int at;
    for (row = 0; row < job->rows && place < job->end; row++) {
        for (at = 0; at < job->columns; at++) {
            place = read_cell(job, &job->column[at], row, place);
            if (place && at + 1 >= job->least && (at + 1 == job->columns || *place != job->separator))
                break;
            if (!place || *place++ != job->separator) {
                job->stopped = at;
                return row;
            }
        }
        if (*place == '\r')
            place++;
        if (*place++ != '\n')
            return row;
    }
    return row;
}

/* ---- The module ---- */

/* The bytes of a row in values, missing and extra. */
static const struct {
    int kind, bytes[3];
} SIZES[] = {{SKIP, {0}},          {INTEGER, {8, 1, 0}}, {REAL, {8, 1, 0}}, {PLAIN, {8, 1, 0}},   {WHOLE, {8, 1, 0}},
             {DECIMAL, {8, 1, 1}}, {CLOCK, {8, 0, 4}},   {TEXT, {4, 0, 0}}, {NUMBERED, {4, 1, 8}}, {VALUE, {8, 0, 8}}};

/* Gets a buffer with an item of `size` bytes for each row; none of size 0. */
static int get_buffer(PyObject *object, Py_buffer *buffer, Py_ssize_t rows, Py_ssize_t size)
{
    if (size == 0)
        return 1;
    if (PyObject_GetBuffer(object, buffer, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) < 0)
        return 0;
    if (rows > PY_SSIZE_T_MAX / size || buffer->len < rows * size ||
        (rows && (uintptr_t)buffer->buf % (size_t)size)) {
        PyErr_SetString(PyExc_ValueError, "a buffer is too short for the rows or not aligned");
        return 0;
    }
    return 1;
}

static int get_column(PyObject *given, Column *column, Py_ssize_t rows, char separator)
{
    PyObject *buffers[3];
    Py_ssize_t at, kind = 0, kinds = sizeof SIZES / sizeof *SIZES;
    const char *suffix;
    /* The suffix is of the tuple, which lives as long as the call. */
    if (!PyArg_ParseTuple(given, "Cpddds#OOO", &column->kind, &column->rounded, &column->factor, &column->least,
                          &column->most, &column->suffix, &column->suffix_size, &buffers[0], &buffers[1], &buffers[2]))
        return 0;
    for (at = 0; at < column->suffix_size; at++)
        if ((unsigned char)*(suffix = column->suffix + at) < 0x20 || *suffix == '"' || *suffix == separator) {
            PyErr_SetString(PyExc_ValueError, "a suffix has no quotes, separators or control characters");
            return 0;
        }
    while (kind < kinds && SIZES[kind].kind != column->kind)
        kind++;
    if (kind == kinds) {
        PyErr_Format(PyExc_ValueError, "no column is of the kind %d", column->kind);
        return 0;
    }
    /* Doubles from 2^63 would not fit into an integer. */
    if (column->kind == WHOLE && !(column->least >= 0 && column->most <= 9e18)) {
        PyErr_SetString(PyExc_ValueError, "whole numbers are from 0 to 9e18");
        return 0;
    }
    for (at = 0; at < 3; at++)
        if (!get_buffer(buffers[at], &column->buffers[at], rows, SIZES[kind].bytes[at]))
            return 0;
    column->values = column->buffers[0].buf;
    column->missing = column->buffers[1].buf;
    column->extra = column->buffers[2].buf;
    return 1;
}

/* The texts of a column as a list of str; NULL with an exception. */
static PyObject *list_texts(const Texts *texts)
{
    PyObject *list = PyList_New(texts->count);
    int32_t code;
    for (code = 0; list && code < texts->count; code++) {
        PyObject *text = PyUnicode_DecodeUTF8(texts->entries[code].text, texts->entries[code].size, "strict");
        if (!text || PyList_SetItem(list, code, text) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/* (rows, the texts of each column, the column that stopped), or NULL with an exception. */
static PyObject *answer(const Job *job, Py_ssize_t rows)
{
    PyObject *lists = PyTuple_New(job->columns), *found;
    int at;
    for (at = 0; lists && at < job->columns; at++) {
        PyObject *list = list_texts(&job->column[at].texts);
        if (!list || PyTuple_SetItem(lists, at, list) < 0) {
            Py_DECREF(lists);
            lists = NULL;
        }
    }
    if (!lists)
        return NULL;
    found = Py_BuildValue("(nOi)", rows, lists, job->stopped);
    Py_DECREF(lists);
    return found;
}

PyDoc_STRVAR(split_doc, "split(block, separator, decimal, blanks, quoted, least, rows, columns) -> (rows, texts, stop)"
                        "\n\nFill the columns from the plain rows at the beginning of a block. It stops at a cell\n"
                        "that is not plain, of the column `stop`, or at another end of a row (-1).");

static PyObject *split(PyObject *module, PyObject *args)
{
    Py_buffer block;
    PyObject *columns, *found = NULL;
    Py_ssize_t count, rows;
    int separator, decimal, at;
    Job job;
    (void)module;
    memset(&job, 0, sizeof job);
    job.stopped = -1;
    if (!PyArg_ParseTuple(args, "y*CCppinO:split", &block, &separator, &decimal, &job.blanks, &job.quoted,
                          &job.least, &job.rows, &columns))
        return NULL;
    count = PyTuple_Check(columns) ? PyTuple_Size(columns) : -1;
    if (count > MAX_COLUMNS || job.least < 1 || job.least > count || job.rows < 0 || block.len > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "1 to 65536 columns, of which a row has 1 or more; a block is below 2 GiB");
        goto released;
    }
    if (separator > 126 || decimal > 126 || separator == '"' || separator == '\n' || separator == '\r' ||
        separator == '-' || decimal == '"' || decimal < 0x20 || is_digit((char)separator) || is_digit((char)decimal) ||
        (separator < 0x20 && separator != '\t')) {
        PyErr_SetString(PyExc_ValueError, "the separator or the decimal sign cannot be one");
        goto released;
    }
    job.separator = (char)separator;
    job.decimal = (char)decimal;
    job.begin = block.buf;
    job.end = job.begin + block.len;
    job.column = calloc((size_t)count, sizeof *job.column);
    if (!job.column) {
        PyErr_NoMemory();
        goto released;
    }
    for (at = 0; at < count; at++) {
        job.columns = at + 1;
        if (!get_column(PyTuple_GetItem(columns, at), &job.column[at], job.rows, job.separator))
            goto freed;
        if (at >= job.least && job.column[at].kind != SKIP) {
            PyErr_SetString(PyExc_ValueError, "columns that a row may lack are skipped");
            goto freed;
        }
    }
    Py_BEGIN_ALLOW_THREADS
    /* Without a line end at the end nothing would stop the reading of a cell. */
    rows = block.len && job.end[-1] == '\n' ? read_rows(&job) : 0;
    Py_END_ALLOW_THREADS
    if (job.no_memory)
        PyErr_NoMemory();
    else
        found = answer(&job, rows);
freed:
    for (at = 0; at < job.columns; at++) {
        Column *column = &job.column[at];
        free(column->texts.entries);
        free(column->texts.slots);
        PyBuffer_Release(&column->buffers[0]);
        PyBuffer_Release(&column->buffers[1]);
        PyBuffer_Release(&column->buffers[2]);
    }
    free(job.column);
released:
    PyBuffer_Release(&block);
    return found;
}

PyDoc_STRVAR(count_lines_doc, "count_lines(block) -> int\n\nCount the line ends of a block.");

static PyObject *count_lines(PyObject *module, PyObject *args)
{
    Py_buffer block;
    Py_ssize_t lines = 0;
    const char *place, *end;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*:count_lines", &block))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    end = (const char *)block.buf + block.len;
    for (place = block.buf; place < end && (place = memchr(place, '\n', (size_t)(end - place))); place++)
        lines++;
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&block);
    return PyLong_FromSsize_t(lines);
}

static PyMethodDef METHODS[] = {
    {"split", split, METH_VARARGS, split_doc},
    {"count_lines", count_lines, METH_VARARGS, count_lines_doc},
    {NULL, NULL, 0, NULL},
};

static int set_up(PyObject *module) { return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE); }

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, (void *)set_up}, {0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_splitter",
    .m_doc = "Rows of delimited text to typed columns.",
    .m_methods = METHODS,
    .m_slots = SLOTS,
};

PyMODINIT_FUNC PyInit__splitter(void) { return PyModuleDef_Init(&MODULE); }
