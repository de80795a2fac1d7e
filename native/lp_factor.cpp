#include "lp_factor.hpp"

#include <cmath>

namespace cobre::lp {

// A right side, moved to positions. Rows that were appended later are not part of L and U: they wait for their eta.
void Factorisation::scatter(SparseVector& v) {
    beyond_.clear();
    for (const Int at : v.index()) {
        if (static_cast<size_t>(at) >= rows_) {
            beyond_.push_back({at, 0, v.value[at]});
            continue;
        }
        work_[position_[at]] = v.value[at];
        pattern_.insert(position_[at]);
    }
    v.clear();
    for (const Entry& entry : beyond_) v.set(entry.row, entry.value);
}

void Factorisation::ftran(SparseVector& v) {
    scatter(v);
    pattern_.ascend(lower_columns_.has, [this](Int at) {
        const double value = work_[at];
        if (value == 0.0) return;
        for (Int entry = lower_columns_.start[at]; entry < lower_columns_.start[at + 1]; ++entry) {
            const Int row = lower_columns_.index[entry];
            work_[row] -= lower_columns_.value[entry] * value;
            pattern_.insert(row);
        }
    });
    pattern_.drain_descending([&](Int at) {
        const double value = work_[at] / pivot_[at];
        work_[at] = 0.0;
        if (std::abs(value) < SparseVector::kTiny) return;
        v.set(order_[at], value);
        for (Int entry = upper_columns_.start[at]; entry < upper_columns_.start[at + 1]; ++entry) {
            const Int row = upper_columns_.index[entry];
            work_[row] -= upper_columns_.value[entry] * value;
            pattern_.insert(row);
        }
    });
    apply_etas(v);
}

void Factorisation::btran(SparseVector& v) {
    apply_etas_transposed(v);
    scatter(v);
    pattern_.ascend([this](Int at) {
        const double value = work_[at] / pivot_[at];
        work_[at] = value;
        if (value == 0.0) return;
        for (Int entry = upper_rows_.start[at]; entry < upper_rows_.start[at + 1]; ++entry) {
            const Int column = upper_rows_.index[entry];
            work_[column] -= upper_rows_.value[entry] * value;
            pattern_.insert(column);
        }
    });
    pattern_.drain_descending([&](Int at) {
        const double value = work_[at];
        work_[at] = 0.0;
        if (std::abs(value) < SparseVector::kTiny) return;
        v.set(order_[at], value);
        for (Int entry = lower_rows_.start[at]; entry < lower_rows_.start[at + 1]; ++entry) {
            const Int column = lower_rows_.index[entry];
            work_[column] -= lower_rows_.value[entry] * value;
            pattern_.insert(column);
        }
    });
}

void Factorisation::apply_etas(SparseVector& v) const {
    for (size_t eta = 0; eta < eta_slot_.size(); ++eta) {
        const Int slot = eta_slot_[eta], first = eta_start_[eta], end = eta_start_[eta + 1];
        if (eta_is_row_[eta]) {
            double value = -v.value[slot];
            for (Int at = first; at < end; ++at) value += eta_value_[at] * v.value[eta_row_[at]];
            v.replace(slot, value);
            continue;
        }
        if (v.value[slot] == 0.0) continue;
        const double step = v.value[slot] / eta_pivot_[eta];
        v.value[slot] = step;
        SparseVector::Adder sum(v);
        for (Int at = first; at < end; ++at) sum.add(eta_row_[at], -eta_value_[at] * step);
    }
}

void Factorisation::apply_etas_transposed(SparseVector& v) const {
    for (size_t eta = eta_slot_.size(); eta-- > 0;) {
        const Int slot = eta_slot_[eta], first = eta_start_[eta], end = eta_start_[eta + 1];
        if (eta_is_row_[eta]) {
            const double value = v.value[slot];
            if (value == 0.0) continue;
            v.value[slot] = -value;
            for (Int at = first; at < end; ++at) v.add(eta_row_[at], eta_value_[at] * value);
            continue;
        }
        double value = v.value[slot];
        for (Int at = first; at < end; ++at) value -= eta_value_[at] * v.value[eta_row_[at]];
        v.replace(slot, value / eta_pivot_[eta]);
    }
}

void Factorisation::close_eta(Int slot, double pivot, bool is_row) {
    eta_slot_.push_back(slot);
    eta_pivot_.push_back(pivot);
    eta_is_row_.push_back(is_row);
    eta_start_.push_back(static_cast<Int>(eta_row_.size()));
    eta_work_ += eta_row_.size();
}

void Factorisation::update(Int slot, const SparseVector& alpha) {
    for (const Int at : alpha.index()) {
        if (at == slot || alpha.value[at] == 0.0) continue;
        eta_row_.push_back(at);
        eta_value_.push_back(alpha.value[at]);
    }
    close_eta(slot, alpha.value[slot], false);
}

void Factorisation::append_row(Int row, const SparseVector& entries) {
    for (const Int at : entries.index()) {
        eta_row_.push_back(at);
        eta_value_.push_back(entries.value[at]);
    }
    close_eta(row, -1.0, true);
}

}  // namespace cobre::lp
