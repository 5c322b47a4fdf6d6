/* The calls of layers above MPI-IO, as calls.h has those of MPI-IO; their numbers go on behind these.
 *
 *   FILE    (name, ...), gives a file
 *   OBJECT  (place, ...), gives a data set, a group or an attribute
 *   DATA    (data set, type, selection in memory, selection in the file, how, buffer)
 *   MANY    (count, data sets, types, selections in memory, selections in the file, how, buffers)
 *   WRITES_CHUNK, READS_CHUNK: one chunk as it is in the file
 *   VALUE   (attribute, type, buffer)
 *   PLAIN   (object, ...)
 *   RELEASES (identifier): may close what it stands for, which only files and data sets make worth a record
 */
#define EACH_OF_HDF5(FILE, OBJECT, DATA, MANY, WRITES_CHUNK, READS_CHUNK, VALUE, PLAIN, RELEASES) \
	FILE(H5Fcreate) \
	FILE(H5Fopen) \
	PLAIN(H5Fclose) \
	PLAIN(H5Fflush) \
	OBJECT(H5Dcreate1) \
	OBJECT(H5Dcreate2) \
	OBJECT(H5Dcreate_anon) \
	OBJECT(H5Dopen1) \
	OBJECT(H5Dopen2) \
	OBJECT(H5Oopen) \
	DATA(H5Dread) \
	DATA(H5Dwrite) \
	MANY(H5Dread_multi) \
	MANY(H5Dwrite_multi) \
	READS_CHUNK(H5Dread_chunk) \
	WRITES_CHUNK(H5Dwrite_chunk) \
	PLAIN(H5Dset_extent) \
	PLAIN(H5Dflush) \
	PLAIN(H5Dclose) \
	OBJECT(H5Acreate1) \
	OBJECT(H5Acreate2) \
	OBJECT(H5Acreate_by_name) \
	OBJECT(H5Aopen) \
	OBJECT(H5Aopen_by_name) \
	OBJECT(H5Aopen_by_idx) \
	VALUE(H5Aread) \
	VALUE(H5Awrite) \
	PLAIN(H5Aclose) \
	OBJECT(H5Gcreate1) \
	OBJECT(H5Gcreate2) \
	OBJECT(H5Gopen1) \
	OBJECT(H5Gopen2) \
	PLAIN(H5Gclose) \
	RELEASES(H5Idec_ref)

/* NetCDF-C. Each of its calls that move data is there for each type in memory, with the bytes of one element there, and for the variable's own type.
 *
 *   OPENS     (path, ..., &file): the place of the last
 *   CLOSES    (file, ...)
 *   DOES      (file, ...)
 *   WHOLE     (file, variable, values): all of the variable
 *   ELEMENT   (file, variable, where, values): one element of it
 *   SOME      (file, variable, where, how many, ..., values)
 *   PUTS_NOTE, GETS_NOTE: attributes
 */
enum { OWN_TYPE, VARYING_BYTES = -1, IS_TEXT = -2 };
#define EACH_TYPE_OF_NETCDF(KIND, name) \
	KIND(name, OWN_TYPE) KIND(name##_text, IS_TEXT) KIND(name##_schar, 1) KIND(name##_uchar, 1) KIND(name##_ubyte, 1) KIND(name##_short, 2) \
	KIND(name##_ushort, 2) KIND(name##_int, 4) KIND(name##_uint, 4) KIND(name##_long, 8) KIND(name##_longlong, 8) KIND(name##_ulonglong, 8) \
	KIND(name##_float, 4) KIND(name##_double, 8) KIND(name##_string, VARYING_BYTES)
#define EACH_OF_NETCDF(OPENS, CLOSES, DOES, WHOLE, ELEMENT, SOME, PUTS_NOTE, GETS_NOTE) \
	OPENS(nc_create, 2) \
	OPENS(nc__create, 4) \
	OPENS(nc_create_par, 4) \
	OPENS(nc_create_par_fortran, 4) \
	OPENS(nc_open, 2) \
	OPENS(nc__open, 3) \
	OPENS(nc_open_par, 4) \
	OPENS(nc_open_par_fortran, 4) \
	CLOSES(nc_close, 0) \
	CLOSES(nc_abort, 0) \
	DOES(nc_enddef, 0) \
	DOES(nc__enddef, 0) \
	DOES(nc_redef, 0) \
	DOES(nc_sync, 0) \
	EACH_TYPE_OF_NETCDF(WHOLE, nc_get_var) \
	EACH_TYPE_OF_NETCDF(ELEMENT, nc_get_var1) \
	EACH_TYPE_OF_NETCDF(SOME, nc_get_vara) \
	EACH_TYPE_OF_NETCDF(SOME, nc_get_vars) \
	EACH_TYPE_OF_NETCDF(SOME, nc_get_varm) \
	EACH_TYPE_OF_NETCDF(WHOLE, nc_put_var) \
	EACH_TYPE_OF_NETCDF(ELEMENT, nc_put_var1) \
	EACH_TYPE_OF_NETCDF(SOME, nc_put_vara) \
	EACH_TYPE_OF_NETCDF(SOME, nc_put_vars) \
	EACH_TYPE_OF_NETCDF(SOME, nc_put_varm) \
	EACH_TYPE_OF_NETCDF(GETS_NOTE, nc_get_att) \
	EACH_TYPE_OF_NETCDF(PUTS_NOTE, nc_put_att)
