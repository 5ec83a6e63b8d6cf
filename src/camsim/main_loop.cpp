#include "main_loop.hpp"

#include <future>

namespace weir::camsim {

namespace {

using Work = std::function<bool()>;

gboolean run_work(gpointer data) { return (*static_cast<Work*>(data))() ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE; }
void delete_work(gpointer data) { delete static_cast<Work*>(data); }

void attach(GSource* source, GMainContext* context, Work work) {
  g_source_set_callback(source, run_work, new Work(std::move(work)), delete_work);
  g_source_attach(source, context);
  g_source_unref(source);
}

}  // namespace

MainLoop::MainLoop() : context_(g_main_context_new()), loop_(g_main_loop_new(context_, FALSE)) {
  thread_ = std::thread([this] {
    g_main_context_push_thread_default(context_);
    g_main_loop_run(loop_);
    g_main_context_pop_thread_default(context_);
  });
}

MainLoop::~MainLoop() {
  call([this] { g_main_loop_quit(loop_); });
  thread_.join();
  g_main_loop_unref(loop_);
  g_main_context_unref(context_);
}

void MainLoop::call(const std::function<void()>& work) {
  if (g_main_context_is_owner(context_)) return work();
  std::promise<void> done;
  attach(g_idle_source_new(), context_, [&] {
    work();
    done.set_value();
    return false;
  });
  done.get_future().wait();
}

void MainLoop::when_idle(std::function<void()> work) {
  GSource* source = g_idle_source_new();
  g_source_set_priority(source, G_PRIORITY_LOW);
  attach(source, context_, [work = std::move(work)] {
    work();
    return false;
  });
}

void MainLoop::after(Duration delay, std::function<void()> work) {
  every(delay, [work = std::move(work)] {
    work();
    return false;
  });
}

void MainLoop::every(Duration period, std::function<bool()> work) {
  attach(g_timeout_source_new(static_cast<guint>(period / 1ms)), context_, std::move(work));
}

}  // namespace weir::camsim
