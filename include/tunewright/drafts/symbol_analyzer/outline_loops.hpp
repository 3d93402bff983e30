// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tunewright/drafts/symbol_analyzer/outline_work.hpp"

namespace tunewright::drafts {

/// Loops and statements in program order, as `loops::detail::Emission` writes them.
class OutlineLoops : OutlinePass {
 public:
  explicit OutlineLoops(OutlineWork& all) : OutlinePass(all) {}

  void run() {
    for (const TensorId id : state().order) {
      if (!runs_at_root(id)) continue;
      const loops::BufferId buffer = plan_->buffer_of[id];
      if (outline_.buffers[buffer].role == loops::BufferRole::Temporary)
        add(Outline::Event::Allocate, buffer);
    }
    for (const TensorId id : state().order)
      if (runs_at_root(id)) emit_stage(id);
  }

 private:
  [[nodiscard]] bool runs_at_root(TensorId id) const {
    return plan_->stages[id].is_live && state().stages[id].location.kind != Kind::At;
  }

  void add(Outline::Event event, std::size_t of) {
    outline_.add(event, of);
    end_tree();
  }
  void leave() {
    outline_.add(Outline::Event::Leave);
    --depth_;
    end_tree();
  }
  void end_tree() {
    if (depth_ > 0) return;
    outline_.add(Outline::Event::Next);
    ++outline_.kernels;
  }

  void emit_stage(TensorId id) { emit_loops(id, initialised_at(id)); }

  /// Place of the outermost reduction that runs, or is listed, in front of which sums are filled; beyond all places for
  /// what is no sum.
  [[nodiscard]] std::size_t initialised_at(TensorId id) const {
    const schedule::Stage& stage = state().stages[id];
    const Work& w = work_[id];
    if (!plan_->stages[id].is_sum) return stage.order.size() + 1;
    const std::size_t first = plan_->stages[id].first_reduction;
    for (std::size_t place = first; place < stage.order.size(); ++place) {
      const IterId iter = stage.order[place];
      const bool runs = w.var[iter] != no_var || w.index[iter] != no_var;
      if (runs && stage.iterators[iter].kind == program::AxisKind::Reduction) return place;
    }
    return first;
  }

  void emit_loops(TensorId id, std::size_t initialised) {
    const schedule::Stage& stage = state().stages[id];
    const Work& w = work_[id];
    const SchedulePlan::StagePlan& plan = plan_->stages[id];
    const std::size_t places = stage.order.size();
    std::size_t opened = 0;
    std::size_t next = 0;   // of what is computed inside
    bool outermost = true;  // no loop or branch of this stage yet
    for (std::size_t place = 0;; ++place) {
      if (place == initialised) emit_initialisation(stage, w, place);
      if (place == places) break;
      const IterId iter = stage.order[place];
      if (w.index[iter] != no_var) {
        if (w.extent[iter] != extent_of(static_cast<Var>(w.index[iter]))) outermost = false;
      } else if (w.var[iter] != no_var) {
        enter(w, iter, outermost ? stage.unroll_limit : 0,
              stage.iterators[iter].kind == program::AxisKind::Reduction);
        ++opened;
        outermost = false;
      }
      if (next == plan.inside.size() || plan.inside[next].place != place) continue;
      const std::size_t first = next;
      for (; next < plan.inside.size() && plan.inside[next].place == place; ++next)
        add(Outline::Event::Allocate, plan_->buffer_of[plan.inside[next].stage]);
      for (std::size_t child = first; child < next; ++child) emit_stage(plan.inside[child].stage);
    }
    const auto statement = outline_.statements.size();
    outline_.statements.push_back(
        {plan.is_sum ? loops::Statement::Kind::Update : loops::Statement::Kind::Assign, plan_->buffer_of[id],
         plan.operations, plan.loads, w.axis_values});
    add(Outline::Event::Run, statement);
    for (; opened > 0; --opened) leave();
  }

  void enter(const Work& w, IterId iter, std::int64_t unroll_limit, bool reduction) {
    const auto var = static_cast<Var>(w.var[iter]);
    const std::size_t loop = outline_.loops.size();
    outline_.loops.push_back({var, extent_of(var), kinds_[var], reduction, unroll_limit});
    outline_.add(Outline::Event::Enter, loop);
    ++depth_;
  }

  void emit_initialisation(const schedule::Stage& stage, const Work& w, std::size_t place) {
    std::size_t opened = 0;
    for (std::size_t p = place; p < stage.order.size(); ++p) {
      const IterId iter = stage.order[p];
      if (stage.iterators[iter].kind == program::AxisKind::Reduction || w.var[iter] == no_var ||
          w.index[iter] != no_var)
        continue;
      enter(w, iter, 0, false);
      ++opened;
    }
    if (opened == 0) end_tree();  // of a single element
    for (; opened > 0; --opened) leave();
  }

  std::size_t depth_ = 0;
};

}  // namespace tunewright::drafts
