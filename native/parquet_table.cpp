#include "parquet_table.hpp"

#include <dlfcn.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace cobre {
namespace {

static_assert(std::endian::native == std::endian::little, "Parquet stores numbers with the least byte first");

using Bytes = std::span<const uint8_t>;

constexpr int kMaxLevels = 16;                // of nested metadata
constexpr size_t kMaxPageBytes = 1 << 26;     // unpacked; writers make pages of 1 MB
constexpr size_t kMaxTableValues = 1u << 25;  // rows x columns: larger tables are Arrow's
constexpr size_t kFooterBytes = 8, kMarkBytes = 4;
constexpr char kMark[] = "PAR1";

// Numbers of the format: physical types, logical types, compressions, encodings, pages.
enum Physical { kInt32 = 1, kDouble = 5 };
enum Logical { kNoLogicalType = 0, kDateType = 6, kIntegerType = 10 };
enum Converted { kNoConvertedType = -1, kConvertedDate = 6, kConvertedUint32 = 13, kConvertedInt32 = 17 };
enum Codec { kUncompressed = 0, kSnappy = 1, kZstd = 6 };
enum Encoding { kPlain = 0, kPlainDictionary = 2, kRle = 3, kRleDictionary = 8 };
enum Page { kDataPage = 0, kDictionaryPage = 2 };
enum Repetition { kRequired = 0, kOptional = 1 };

// Something that is left to Arrow: unknown here, or damaged.
struct Unusual {};

void require(bool condition) {
    if (!condition) throw Unusual{};
}

// Reads bytes from front to back; Unusual where they end too early.
class Reader {
public:
    explicit Reader(Bytes bytes) : bytes_(bytes) {}

    size_t left() const { return bytes_.size(); }
    uint8_t byte() { return take(1)[0]; }

    Bytes take(size_t count) {
        require(count <= bytes_.size());
        const Bytes taken = bytes_.first(count);
        bytes_ = bytes_.subspan(count);
        return taken;
    }

    uint64_t varint() {
        uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const uint8_t part = byte();
            value |= static_cast<uint64_t>(part & 0x7f) << shift;
            if (part < 0x80) return value;
        }
        throw Unusual{};
    }

    // Little-endian, of up to eight bytes.
    uint64_t fixed(size_t count) {
        uint64_t value = 0;
        const Bytes taken = take(count);
        for (size_t at = 0; at < count; ++at) value |= static_cast<uint64_t>(taken[at]) << (8 * at);
        return value;
    }

private:
    Bytes bytes_;
};

// Thrift's compact protocol, in which Parquet describes itself.
class Thrift {
public:
    enum Type {
        kStop = 0,
        kTrue = 1,
        kFalse = 2,
        kByte = 3,
        kNumber16 = 4,
        kNumber32 = 5,
        kNumber64 = 6,
        kReal = 7,
        kBinary = 8,
        kList = 9,
        kSet = 10,
        kMap = 11,
        kStruct = 12
    };

    explicit Thrift(Reader& reader) : reader_(reader) {}

    // Calls `field(number, type)` for each field of a struct, which must read its value, or skip it.
    template <typename Field>
    void fields(Field&& field) {
        require(++level_ <= kMaxLevels);
        int64_t number = 0;
        for (;;) {
            const uint8_t head = reader_.byte();
            const int type = head & 0x0f;
            if (type == kStop) break;
            number = head >> 4 ? number + (head >> 4) : integer();
            field(number, type);
        }
        --level_;
    }

    // Calls `element(type)` for each element of a list.
    template <typename Element>
    void elements(int type, Element&& element) {
        require(type == kList);
        const uint8_t head = reader_.byte();
        const size_t count = head >> 4 == 15 ? reader_.varint() : head >> 4;
        require(count <= reader_.left());
        for (size_t at = 0; at < count; ++at) element(head & 0x0f);
    }

    int64_t integer() {
        const uint64_t value = reader_.varint();
        return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
    }

    int64_t number(int type) {
        require(type == kNumber16 || type == kNumber32 || type == kNumber64);
        return integer();
    }

    // A size or an offset.
    size_t size(int type) {
        const int64_t value = number(type);
        require(value >= 0);
        return static_cast<size_t>(value);
    }

    std::string text(int type) {
        require(type == kBinary);
        const Bytes bytes = reader_.take(reader_.varint());
        return {bytes.begin(), bytes.end()};
    }

    void skip(int type) {
        switch (type) {
            case kTrue:
            case kFalse: return;
            case kByte: reader_.byte(); return;
            case kNumber16:
            case kNumber32:
            case kNumber64: reader_.varint(); return;
            case kReal: reader_.take(8); return;
            case kBinary: reader_.take(reader_.varint()); return;
            case kList: return elements(type, [&](int inner) { skip_element(inner); });
            case kStruct: return fields([&](int64_t, int inner) { skip(inner); });
            default: throw Unusual{};
        }
    }

private:
    // In lists, flags have a byte each.
    void skip_element(int type) {
        require(++level_ <= kMaxLevels);
        skip(type == kTrue || type == kFalse ? kByte : type);
        --level_;
    }

    Reader& reader_;
    int level_ = 0;
};

struct Column {
    std::string name, type;  // of Arrow
    size_t width = 0;        // bytes of a value
    bool is_optional = false;
};

struct Chunk {
    size_t codec = 0, num_values = 0, start = 0, bytes = 0;
};

struct Group {
    size_t num_rows = 0;
    std::vector<Chunk> chunks;
};

struct Description {
    std::vector<Column> columns;
    std::vector<Group> groups;
    size_t num_rows = 0;
};

// The footer of a file.
class Footer {
public:
    explicit Footer(Reader reader) : reader_(reader), thrift_(reader_) {}

    Description read() {
        Description found;
        std::vector<Element> schema;
        thrift_.fields([&](int64_t field, int type) {
            switch (field) {
                case 2: thrift_.elements(type, [&](int inner) { schema.push_back(element(inner)); }); break;
                case 3: found.num_rows = thrift_.size(type); break;
                case 4: thrift_.elements(type, [&](int inner) { found.groups.push_back(group(inner)); }); break;
                case 8: throw Unusual{};  // encryption
                default: thrift_.skip(type);
            }
        });
        require(!schema.empty() && schema[0].num_children + 1 == schema.size());
        for (size_t at = 1; at < schema.size(); ++at) found.columns.push_back(column(schema[at]));
        size_t rows = 0;
        for (const Group& group : found.groups) {
            require(group.chunks.size() == found.columns.size());
            for (const Chunk& chunk : group.chunks) require(chunk.num_values == group.num_rows);
            rows += group.num_rows;
            require(rows <= kMaxTableValues);
        }
        require(rows == found.num_rows && rows * std::max<size_t>(1, found.columns.size()) <= kMaxTableValues);
        return found;
    }

private:
    struct Element {
        std::string name;
        int64_t physical = -1, repetition = -1, converted = kNoConvertedType, logical = kNoLogicalType, bits = 0;
        size_t num_children = 0;
        bool is_signed = false;
    };

    Element element(int type) {
        require(type == Thrift::kStruct);
        Element found;
        thrift_.fields([&](int64_t field, int inner) {
            switch (field) {
                case 1: found.physical = thrift_.number(inner); break;
                case 3: found.repetition = thrift_.number(inner); break;
                case 4: found.name = thrift_.text(inner); break;
                case 5: found.num_children = thrift_.size(inner); break;
                case 6: found.converted = thrift_.number(inner); break;
                case 10: logical_type(found, inner); break;
                default: thrift_.skip(inner);
            }
        });
        return found;
    }

    // A union: one field, whose number is the type.
    void logical_type(Element& found, int type) {
        require(type == Thrift::kStruct);
        thrift_.fields([&](int64_t field, int inner) {
            found.logical = field;
            if (field != kIntegerType) return thrift_.skip(inner);
            require(inner == Thrift::kStruct);
            thrift_.fields([&](int64_t part, int kind) {
                if (part == 1 && kind == Thrift::kByte) found.bits = reader_.byte();
                else if (part == 2 && (kind == Thrift::kTrue || kind == Thrift::kFalse))
                    found.is_signed = kind == Thrift::kTrue;
                else throw Unusual{};
            });
        });
    }

    static Column column(const Element& element) {
        require(element.num_children == 0);
        // Names of the format are plain; Python would have to decode any other.
        require(std::all_of(element.name.begin(), element.name.end(), [](char c) { return c >= ' ' && c <= '~'; }));
        require(element.repetition == kRequired || element.repetition == kOptional);
        const bool is_double = element.physical == kDouble;
        require(is_double || element.physical == kInt32);
        return {element.name, is_double ? plain(element) : integer(element), is_double ? 8u : 4u,
                element.repetition == kOptional};
    }

    static std::string plain(const Element& element) {
        require(element.logical == kNoLogicalType && element.converted == kNoConvertedType);
        return "double";
    }

    static std::string integer(const Element& element) {
        if (element.logical == kDateType) return "date32[day]";
        if (element.logical == kIntegerType) {
            require(element.bits == 32);
            return element.is_signed ? "int32" : "uint32";
        }
        require(element.logical == kNoLogicalType);
        switch (element.converted) {
            case kNoConvertedType:
            case kConvertedInt32: return "int32";
            case kConvertedUint32: return "uint32";
            case kConvertedDate: return "date32[day]";
            default: throw Unusual{};
        }
    }

    Group group(int type) {
        require(type == Thrift::kStruct);
        Group found;
        thrift_.fields([&](int64_t field, int inner) {
            switch (field) {
                case 1: thrift_.elements(inner, [&](int kind) { found.chunks.push_back(chunk(kind)); }); break;
                case 3: found.num_rows = thrift_.size(inner); break;
                default: thrift_.skip(inner);
            }
        });
        return found;
    }

    Chunk chunk(int type) {
        require(type == Thrift::kStruct);
        Chunk found;
        bool is_described = false;
        thrift_.fields([&](int64_t field, int inner) {
            require(field != 1 && field < 8);  // another file, encryption
            if (field != 3) return thrift_.skip(inner);
            is_described = true;
            found = chunk_of_metadata(inner);
        });
        require(is_described);
        return found;
    }

    Chunk chunk_of_metadata(int type) {
        require(type == Thrift::kStruct);
        Chunk found;
        size_t data = 0, dictionary = 0;
        thrift_.fields([&](int64_t field, int inner) {
            switch (field) {
                case 4: found.codec = thrift_.size(inner); break;
                case 5: found.num_values = thrift_.size(inner); break;
                case 7: found.bytes = thrift_.size(inner); break;
                case 9: data = thrift_.size(inner); break;
                case 11: dictionary = thrift_.size(inner); break;
                default: thrift_.skip(inner);
            }
        });
        found.start = dictionary > 0 && dictionary < data ? dictionary : data;
        return found;
    }

    Reader reader_;
    Thrift thrift_;
};

// Of the system's library, which nearly every Linux has; elsewhere, Arrow unpacks.
using Unpack = size_t (*)(void* target, size_t capacity, const void* source, size_t bytes);

Unpack zstd() {
    static const Unpack found = [] {
        void* library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
        return library ? reinterpret_cast<Unpack>(dlsym(library, "ZSTD_decompress")) : nullptr;
    }();
    return found;
}

void unpack_snappy(Bytes packed, std::span<uint8_t> target) {
    Reader reader(packed);
    require(reader.varint() == target.size());
    size_t at = 0;
    while (reader.left()) {
        const uint8_t tag = reader.byte();
        if ((tag & 3) == 0) {  // literal bytes
            size_t length = tag >> 2;
            if (length >= 60) length = reader.fixed(length - 59);
            ++length;
            require(length <= target.size() - at);
            std::memcpy(target.data() + at, reader.take(length).data(), length);
            at += length;
            continue;
        }
        const bool is_short = (tag & 3) == 1;
        const size_t length = is_short ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1;
        size_t back = reader.fixed(is_short ? 1 : (tag & 3) == 2 ? 2 : 4);
        if (is_short) back |= static_cast<size_t>(tag >> 5) << 8;
        require(back >= 1 && back <= at && length <= target.size() - at);
        for (size_t end = at + length; at < end; ++at) target[at] = target[at - back];  // ranges may overlap
    }
    require(at == target.size());
}

// Returns the unpacked bytes of a page: those given, or `space`.
Bytes unpacked(Bytes packed, size_t bytes, size_t codec, std::vector<uint8_t>& space) {
    require(bytes <= kMaxPageBytes);
    if (codec == kUncompressed) {
        require(packed.size() == bytes);
        return packed;
    }
    space.resize(bytes);
    if (codec == kSnappy) {
        unpack_snappy(packed, space);
    } else {
        require(codec == kZstd && zstd());
        require(zstd()(space.data(), bytes, packed.data(), packed.size()) == bytes);  // errors are huge numbers
    }
    return space;
}

// Numbers of up to 32 bits: runs of equal ones, and groups of eight packed bit by bit. Calls `take(value, count)`.
template <typename Take>
void decode_runs(Reader& reader, unsigned bits, size_t count, Take&& take) {
    require(bits <= 32);
    while (count) {
        const uint64_t head = reader.varint();
        if ((head & 1) == 0) {
            const size_t run = std::min<uint64_t>(count, head >> 1);
            require(run > 0);
            take(static_cast<uint32_t>(reader.fixed((bits + 7) / 8)), run);
            count -= run;
            continue;
        }
        const uint64_t groups = head >> 1;
        require(groups > 0 && groups <= kMaxPageBytes);
        // A writer may leave out bytes of the last group that hold nothing.
        const size_t here = std::min<uint64_t>(count, groups * 8);
        const Bytes packed = reader.take(std::min<size_t>(reader.left(), groups * bits));
        require((here * bits + 7) / 8 <= packed.size());
        const uint64_t mask = (uint64_t{1} << bits) - 1;
        uint64_t waiting = 0;
        unsigned held = 0;
        size_t next = 0;
        for (size_t at = 0; at < here; ++at) {
            for (; held < bits; held += 8) waiting |= static_cast<uint64_t>(packed[next++]) << held;
            take(static_cast<uint32_t>(waiting & mask), 1);
            waiting >>= bits;
            held -= bits;
        }
        count -= here;
    }
}

struct PageHeader {
    int64_t kind = -1;
    size_t unpacked_bytes = 0, packed_bytes = 0, num_values = 0, encoding = 0, level_encoding = kRle;

    static PageHeader read(Reader& reader) {
        PageHeader found;
        Thrift thrift(reader);
        thrift.fields([&](int64_t field, int type) {
            switch (field) {
                case 1: found.kind = thrift.number(type); break;
                case 2: found.unpacked_bytes = thrift.size(type); break;
                case 3: found.packed_bytes = thrift.size(type); break;
                case 5:
                case 7:  // data and dictionary have these fields in common
                    require(type == Thrift::kStruct);
                    thrift.fields([&](int64_t part, int inner) {
                        if (part == 1) found.num_values = thrift.size(inner);
                        else if (part == 2) found.encoding = thrift.size(inner);
                        else if (part == 3 && field == 5) found.level_encoding = thrift.size(inner);
                        else thrift.skip(inner);
                    });
                    break;
                default: thrift.skip(type);
            }
        });
        return found;
    }
};

// The values of a column in one group of rows, for values of type T.
template <typename T>
class ChunkReader {
public:
    ChunkReader(Reader pages, const Column& column, size_t codec) : pages_(pages), column_(column), codec_(codec) {}

    // Fills all of both; a null's value is 0.
    void read(std::span<T> values, std::span<bool> is_null) {
        for (size_t done = 0; done < values.size();) {
            const PageHeader header = PageHeader::read(pages_);
            const Bytes packed = pages_.take(header.packed_bytes);
            if (header.kind == kDictionaryPage) {
                require(header.encoding == kPlain || header.encoding == kPlainDictionary);
                const Bytes content = unpacked(packed, header.unpacked_bytes, codec_, space_);
                require(content.size() / sizeof(T) >= header.num_values);
                dictionary_.resize(header.num_values);
                if (header.num_values) std::memcpy(dictionary_.data(), content.data(), header.num_values * sizeof(T));
                continue;
            }
            require(header.kind == kDataPage && header.num_values > 0);
            require(header.num_values <= values.size() - done);
            Reader page(unpacked(packed, header.unpacked_bytes, codec_, space_));
            read_page(page, header, values.subspan(done, header.num_values), is_null.subspan(done, header.num_values));
            done += header.num_values;
        }
    }

private:
    void read_page(Reader& page, const PageHeader& header, std::span<T> values, std::span<bool> is_null) {
        const size_t present = column_.is_optional ? read_levels(page, header, is_null) : values.size();
        if (!column_.is_optional) std::fill(is_null.begin(), is_null.end(), false);
        if (header.encoding == kPlain) {
            require(page.left() / sizeof(T) >= present);
            std::memcpy(values.data(), page.take(present * sizeof(T)).data(), present * sizeof(T));
        } else {
            require(header.encoding == kRleDictionary || header.encoding == kPlainDictionary);
            if (present) read_references(page, values.first(present));
        }
        // From the end, because values move back only.
        for (size_t row = values.size(), next = present; next < row && row-- > 0;)
            values[row] = is_null[row] ? T{} : values[--next];
    }

    // Returns how many values are not null.
    size_t read_levels(Reader& page, const PageHeader& header, std::span<bool> is_null) {
        require(header.level_encoding == kRle);
        Reader levels(page.take(page.fixed(4)));
        size_t at = 0, present = 0;
        decode_runs(levels, 1, is_null.size(), [&](uint32_t level, size_t count) {
            std::fill_n(is_null.begin() + static_cast<std::ptrdiff_t>(at), count, level == 0);
            at += count;
            present += level == 0 ? 0 : count;
        });
        return present;
    }

    void read_references(Reader& page, std::span<T> values) {
        size_t at = 0;
        const unsigned bits = page.byte();
        decode_runs(page, bits, values.size(), [&](uint32_t place, size_t count) {
            require(place < dictionary_.size());
            std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(at), count, dictionary_[place]);
            at += count;
        });
    }

    Reader pages_;
    const Column& column_;
    size_t codec_;
    std::vector<T> dictionary_;
    std::vector<uint8_t> space_;
};

// A file in memory. Its bytes must outlive it.
class ParquetTable {
public:
    explicit ParquetTable(Bytes file) : file_(file), description_(described(file)) {}

    const Description& description() const { return description_; }

    template <typename T>
    void read(size_t column, std::span<T> values, std::span<bool> is_null) const {
        size_t row = 0;
        for (const Group& group : description_.groups) {
            const Chunk& chunk = group.chunks[column];
            require(chunk.start <= file_.size() && chunk.bytes <= file_.size() - chunk.start);
            Reader pages(file_.subspan(chunk.start, chunk.bytes));
            ChunkReader<T>(pages, description_.columns[column], chunk.codec)
                .read(values.subspan(row, group.num_rows), is_null.subspan(row, group.num_rows));
            row += group.num_rows;
        }
    }

private:
    static Description described(Bytes file) {
        require(file.size() >= kFooterBytes + kMarkBytes);
        require(std::memcmp(file.data(), kMark, kMarkBytes) == 0);
        require(std::memcmp(file.data() + file.size() - kMarkBytes, kMark, kMarkBytes) == 0);
        const size_t bytes = Reader(file.last(kFooterBytes)).fixed(4);
        require(bytes <= file.size() - kFooterBytes - kMarkBytes);
        return Footer(Reader(file.subspan(file.size() - kFooterBytes - bytes, bytes))).read();
    }

    Bytes file_;
    Description description_;
};

// As Python sees it: the file stays alive with the table.
struct BoundTable {
    nb::bytes content;
    ParquetTable table;
};

using Values = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

bool read_column(const BoundTable& bound, size_t column, const Values& values, const Flags& is_null) {
    const Description& description = bound.table.description();
    if (column >= description.columns.size()) throw nb::index_error("no such column");
    const size_t rows = description.num_rows, width = description.columns[column].width;
    if (values.size() != rows * width || is_null.size() != rows) throw nb::value_error("one place for each row");
    const std::span<bool> flags(is_null.data(), rows);
    try {
        if (width == 8) bound.table.read(column, std::span(reinterpret_cast<double*>(values.data()), rows), flags);
        else bound.table.read(column, std::span(reinterpret_cast<int32_t*>(values.data()), rows), flags);
    } catch (const Unusual&) {
        return false;
    }
    return true;
}

nb::object open_table(nb::bytes content) {
    try {
        ParquetTable table(Bytes(static_cast<const uint8_t*>(content.data()), content.size()));
        return nb::cast(BoundTable{std::move(content), std::move(table)});
    } catch (const Unusual&) {
        return nb::none();
    }
}

}  // namespace

void bind_parquet_table(nb::module_& module) {
    nb::class_<BoundTable>(module, "ParquetTable")
        .def_static("open", &open_table, "content"_a)
        .def_prop_ro("num_rows", [](const BoundTable& bound) { return bound.table.description().num_rows; })
        .def_prop_ro("columns",
                     [](const BoundTable& bound) {
                         std::vector<std::pair<std::string, std::string>> found;
                         for (const Column& column : bound.table.description().columns)
                             found.emplace_back(column.name, column.type);
                         return found;
                     })
        .def("read", &read_column, "column"_a, "values"_a, "is_null"_a);
}

}  // namespace cobre
