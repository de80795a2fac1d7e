// A scan of JSON text for what Python has to look at one by one; see cobre.io.decoding.json_documents.
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace cobre {
namespace {

constexpr size_t kMaxLevels = 64;      // Python refuses documents at 100
constexpr size_t kMaxWholeDigits = 9;  // ids of ten digits may exceed 32 bits
constexpr size_t kManyKeys = 12;       // from here on sorting is faster than comparing all pairs
constexpr std::string_view kDate = "_date";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Walks through a text that is taken for valid JSON: on invalid text its answer means nothing, but it ends.
class Scan {
public:
    explicit Scan(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

    // False at the first sight of anything unusual.
    bool is_ordinary() {
        while (at_ < end_) {
            const char c = *at_;
            if (c == '"') {
                if (!pass_string()) return false;
            } else if (is_digit(c)) {
                if (!pass_number()) return false;
            } else {
                if (c == 'I' || !pass_mark(c)) return false;
                ++at_;
            }
        }
        return true;
    }

private:
    bool pass_mark(char c) {
        switch (c) {
            case '{':
            case '[':
                if (levels_.size() == kMaxLevels) return false;
                levels_.push_back({c == '{', keys_.size()});
                expects_key_ = c == '{';
                return true;
            case '}':
            case ']':
                if (levels_.empty() || (c == '}' && has_duplicates(levels_.back().first_key))) return false;
                keys_.resize(levels_.back().first_key);
                levels_.pop_back();
                expects_key_ = false;
                return true;
            case ',': expects_key_ = !levels_.empty() && levels_.back().is_object; return true;
            default: return true;
        }
    }

    bool pass_string() {
        const char* start = ++at_;
        bool has_escapes = false;
        while (true) {
            const char* quote = static_cast<const char*>(std::memchr(at_, '"', static_cast<size_t>(end_ - at_)));
            if (quote == nullptr) return false;
            const char* escape = static_cast<const char*>(std::memchr(at_, '\\', static_cast<size_t>(quote - at_)));
            if (escape == nullptr) {
                at_ = quote + 1;
                break;
            }
            if (escape + 1 == end_ || escape[1] == 'u') return false;
            has_escapes = true;
            at_ = escape + 2;
        }
        const std::string_view word(start, static_cast<size_t>(at_ - 1 - start));
        if (expects_key_) {
            if (has_escapes) return false;
            keys_.push_back(word);
            expects_key_ = false;
        }
        return !word.ends_with(kDate) || has_date_next();
    }

    // Whether a colon and a date such as "2024-01-31" come next.
    bool has_date_next() const {
        const char* next = at_;
        const auto skip_blanks = [&] {
            while (next < end_ && is_blank(*next)) ++next;
        };
        skip_blanks();
        if (next == end_ || *next++ != ':') return false;
        skip_blanks();
        constexpr std::string_view kPattern = "\"dddd-dd-dd\"";
        if (static_cast<size_t>(end_ - next) < kPattern.size()) return false;
        return std::equal(kPattern.begin(), kPattern.end(), next,
                          [](char pattern, char c) { return pattern == 'd' ? is_digit(c) : pattern == c; });
    }

    bool pass_number() {
        const char* start = at_;
        pass_digits();
        if (static_cast<size_t>(at_ - start) > kMaxWholeDigits) return false;
        if (at_ < end_ && *at_ == '.') {
            ++at_;
            pass_digits();
        }
        if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
            if (at_ + 1 == end_ || at_[1] != '-') return false;
            at_ += 2;
            pass_digits();
        }
        return true;
    }

    void pass_digits() {
        while (at_ < end_ && is_digit(*at_)) ++at_;
    }

    // Whether the object whose keys begin here has one of them twice; may reorder them.
    bool has_duplicates(size_t first) {
        const auto begin = keys_.begin() + static_cast<std::ptrdiff_t>(first);
        if (keys_.size() - first >= kManyKeys) {
            std::sort(begin, keys_.end());
            return std::adjacent_find(begin, keys_.end()) != keys_.end();
        }
        for (auto key = begin; key != keys_.end(); ++key)
            if (std::find(begin, key, *key) != key) return true;
        return false;
    }

    struct Level {
        bool is_object;
        size_t first_key;
    };

    const char *at_, *end_;
    bool expects_key_ = false;
    std::vector<Level> levels_;
    std::vector<std::string_view> keys_;  // of all objects that are open
};

}  // namespace

void bind_json_scan(nb::module_& module) {
    module.def("is_ordinary_json", [](std::string_view text) { return Scan(text).is_ordinary(); }, "text"_a);
}

}  // namespace cobre
