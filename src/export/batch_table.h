// The virtual table through which SQLite reads a DbBatch (https://www.sqlite.org/vtab.html).
#pragma once

#include <sqlite3.h>

#include "export/db_batch.h"

namespace memscope {

// Makes `memscope_batch` known to `db`: it has the columns of memscope_dump and the rows of the
// batch that `*batch` points to when a statement begins; both must outlive the statement. SQLite's
// status.
int add_batch_table(sqlite3* db, const DbBatch* const* batch);

}  // namespace memscope
