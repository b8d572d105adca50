//! A table that other libraries take as Arrow data, without a copy.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::columns;

/// Columns of equal length, in Arrow's format. pandas, Polars, pyarrow and DuckDB take it as it is
/// (`__arrow_c_stream__`).
#[pyclass(frozen, module = "ackclock._core")]
#[derive(Debug)]
pub(crate) struct Table(pub(crate) RecordBatch);

#[pymethods]
impl Table {
    /// Reads CSV text with a header; empty cells are missing values.
    #[staticmethod]
    fn from_csv(py: Python<'_>, text: &[u8]) -> PyResult<Table> {
        // The bytes of a Python object do not change.
        py.detach(|| columns::of_csv(text)).map(Table).map_err(PyValueError::new_err)
    }

    /// Takes Arrow data in one piece (`__arrow_c_stream__`), without a copy.
    #[staticmethod]
    fn from_arrow(data: &Bound<'_, PyAny>) -> PyResult<Table> {
        let capsule = data.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
        let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: a capsule of this name holds such a stream, which is moved out of it: a released
        // one is left.
        #[expect(unsafe_code, reason = "Arrow's C interface")]
        let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
        let wrong = |error: ArrowError| PyValueError::new_err(error.to_string());
        let mut reader = reader.map_err(wrong)?;
        let batch = match reader.next() {
            Some(batch) => batch.map_err(wrong)?,
            None => RecordBatch::new_empty(reader.schema()),
        };
        if reader.next().is_some() {
            return Err(PyValueError::new_err("the data is in several pieces, expected one"));
        }
        let known = |kind: &DataType| {
            matches!(kind, DataType::Boolean | DataType::Int64 | DataType::Float64 | DataType::LargeUtf8)
        };
        match batch.schema_ref().fields().iter().find(|field| !known(field.data_type())) {
            Some(field) => Err(PyValueError::new_err(format!("a column is of type {}", field.data_type()))),
            None => Ok(Table(batch)),
        }
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<ackclock.Table: {} rows, {} columns>", self.0.num_rows(), self.0.num_columns())
    }

    /// The values of a column; those that are missing are None.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.0.column_by_name(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        match column.data_type() {
            DataType::Boolean => PyList::new(py, column.as_boolean().iter().collect::<Vec<_>>()),
            DataType::Int64 => PyList::new(py, column.as_primitive::<Int64Type>().iter().collect::<Vec<_>>()),
            DataType::Float64 => PyList::new(py, column.as_primitive::<Float64Type>().iter().collect::<Vec<_>>()),
            _ => PyList::new(py, column.as_string::<i64>().iter().collect::<Vec<_>>()),
        }
    }

    /// All columns as lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for name in self.column_names() {
            dict.set_item(&name, self.column(py, &name)?)?;
        }
        Ok(dict)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema_ref().as_ref());
        let schema = schema.map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The columns are what they are: another schema is not negotiated.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let reader = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
