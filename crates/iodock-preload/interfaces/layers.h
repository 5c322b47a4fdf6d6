/* The intercepted calls of layers above MPI-IO, numbered after the calls of MPI-IO in calls.h. Calls of HDF5,
 * by their arguments and results:
 *
 *   FILE    (name, ...); returns a file
 *   OBJECT  (location, name, ...); returns a data set, a group or an attribute
 *   UNNAMED (...); returns an object for which HDF5 would have to search the file for a name
 *   DATA    (data set, type, selection in memory, selection in the file, property list, buffer)
 *   MANY    (count, data sets, types, selections in memory, selections in the file, property list, buffers)
 *   WRITES_CHUNK, READS_CHUNK: move one chunk as it is stored in the file
 *   VALUE   (attribute, type, buffer)
 *   PLAIN   (object, ...)
 *   RELEASES (identifier): may close the object; recorded only for files and data sets
 */
#define EACH_OF_HDF5(FILE, OBJECT, UNNAMED, DATA, MANY, WRITES_CHUNK, READS_CHUNK, VALUE, PLAIN, RELEASES) \
	FILE(H5Fcreate) \
	FILE(H5Fopen) \
	PLAIN(H5Fclose) \
	PLAIN(H5Fflush) \
	OBJECT(H5Dcreate1) \
	OBJECT(H5Dcreate2) \
	UNNAMED(H5Dcreate_anon) \
	OBJECT(H5Dopen1) \
	OBJECT(H5Dopen2) \
	OBJECT(H5Oopen) \
	OBJECT(H5Oopen_by_idx) \
	UNNAMED(H5Oopen_by_addr) \
	UNNAMED(H5Oopen_by_token) \
	UNNAMED(H5Rdereference1) \
	UNNAMED(H5Rdereference2) \
	UNNAMED(H5Ropen_object) \
	DATA(H5Dread) \
	DATA(H5Dwrite) \
	MANY(H5Dread_multi) \
	MANY(H5Dwrite_multi) \
	READS_CHUNK(H5Dread_chunk) \
	READS_CHUNK(H5Dread_chunk1) \
	READS_CHUNK(H5Dread_chunk2) \
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
	UNNAMED(H5Gcreate_anon) \
	OBJECT(H5Gopen1) \
	OBJECT(H5Gopen2) \
	PLAIN(H5Gclose) \
	RELEASES(H5Idec_ref)

/* Calls of NetCDF-C. Each call that moves data exists for the variable's own type (OWN_TYPE) and for each
 * type in memory. The second value is then the size of one element in bytes.
 *
 *   OPENS     (path, ..., &file): the second value is the index of `&file`, and whether the file is in memory
 *   CLOSES    (file, ...)
 *   DOES      (file, ...)
 *   WHOLE     (file, variable, values): moves the whole variable
 *   ELEMENT   (file, variable, index, values): moves one element
 *   SOME      (file, variable, start, counts, ..., values)
 *   PUTS_NOTE, GETS_NOTE: write and read attributes
 */
enum { OWN_TYPE, VARYING_BYTES = -1, IS_TEXT = -2, IN_MEMORY = 16 };
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
	OPENS(nc_create_mem, 3 | IN_MEMORY) \
	OPENS(nc_open_mem, 4 | IN_MEMORY) \
	OPENS(nc_open_memio, 3 | IN_MEMORY) \
	CLOSES(nc_close, 0) \
	CLOSES(nc_close_memio, 0) \
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

/* Calls of PnetCDF, which itself calls MPI-IO: their kind, and the size of one element in memory in bytes.
 * OWN_TYPE: arguments of the call give a count and an MPI type.
 *
 *   OPENS_KIND    (communicator, path, ..., &file)
 *   CLOSES_KIND, DOES_KIND (file, ...)
 *   WHOLE_KIND    (file, variable, values, ...)
 *   ELEMENT_KIND  (file, variable, index, values, ...)
 *   PART_KIND, STRIDED_KIND, MAPPED_KIND (file, variable, start, counts, ..., values, ...)
 *   PARTS_KIND    (file, variable, number of parts, starts, counts, values, ...)
 *   LAID_KIND     (file, variable, MPI type in the file, values, count, MPI type)
 *   OF_MANY       (file, number of variables, variables, ...): the other arguments are arrays, one entry per variable
 */
#define EACH_TYPE_OF_PNETCDF(ONE, kind, name, suffix) \
	ONE(name##suffix, kind, OWN_TYPE) ONE(name##_text##suffix, kind, 1) ONE(name##_schar##suffix, kind, 1) ONE(name##_uchar##suffix, kind, 1) \
	ONE(name##_short##suffix, kind, 2) ONE(name##_ushort##suffix, kind, 2) ONE(name##_int##suffix, kind, 4) ONE(name##_uint##suffix, kind, 4) \
	ONE(name##_long##suffix, kind, 8) ONE(name##_longlong##suffix, kind, 8) ONE(name##_ulonglong##suffix, kind, 8) \
	ONE(name##_float##suffix, kind, 4) ONE(name##_double##suffix, kind, 8)
#define EACH_SHAPE_OF_PNETCDF(ONE, many, name, suffix) \
	EACH_TYPE_OF_PNETCDF(ONE, many | WHOLE_KIND, name, suffix) EACH_TYPE_OF_PNETCDF(ONE, many | ELEMENT_KIND, name##1, suffix) \
	EACH_TYPE_OF_PNETCDF(ONE, many | PART_KIND, name##a, suffix) EACH_TYPE_OF_PNETCDF(ONE, many | STRIDED_KIND, name##s, suffix) \
	EACH_TYPE_OF_PNETCDF(ONE, many | MAPPED_KIND, name##m, suffix)
#define EACH_WITH_LISTS_OF_PNETCDF(ONE, name, suffix) \
	EACH_SHAPE_OF_PNETCDF(ONE, 0, name, suffix) EACH_TYPE_OF_PNETCDF(ONE, PARTS_KIND, name##n, suffix)
#define EACH_OF_PNETCDF(ONE) \
	ONE(ncmpi_create, OPENS_KIND, 0) \
	ONE(ncmpi_open, OPENS_KIND, 0) \
	ONE(ncmpi_close, CLOSES_KIND, 0) \
	ONE(ncmpi_abort, CLOSES_KIND, 0) \
	ONE(ncmpi_enddef, DOES_KIND, 0) \
	ONE(ncmpi__enddef, DOES_KIND, 0) \
	ONE(ncmpi_redef, DOES_KIND, 0) \
	ONE(ncmpi_sync, DOES_KIND, 0) \
	ONE(ncmpi_sync_numrecs, DOES_KIND, 0) \
	ONE(ncmpi_flush, DOES_KIND, 0) \
	ONE(ncmpi_begin_indep_data, DOES_KIND, 0) \
	ONE(ncmpi_end_indep_data, DOES_KIND, 0) \
	ONE(ncmpi_wait, DOES_KIND, 0) \
	ONE(ncmpi_wait_all, DOES_KIND, 0) \
	EACH_WITH_LISTS_OF_PNETCDF(ONE, ncmpi_get_var, ) \
	EACH_WITH_LISTS_OF_PNETCDF(ONE, ncmpi_get_var, _all) \
	EACH_WITH_LISTS_OF_PNETCDF(ONE, ncmpi_put_var, ) \
	EACH_WITH_LISTS_OF_PNETCDF(ONE, ncmpi_put_var, _all) \
	EACH_WITH_LISTS_OF_PNETCDF(ONE, ncmpi_iget_var, ) \
	EACH_WITH_LISTS_OF_PNETCDF(ONE, ncmpi_iput_var, ) \
	EACH_WITH_LISTS_OF_PNETCDF(ONE, ncmpi_bput_var, ) \
	EACH_SHAPE_OF_PNETCDF(ONE, OF_MANY, ncmpi_mget_var, ) \
	EACH_SHAPE_OF_PNETCDF(ONE, OF_MANY, ncmpi_mget_var, _all) \
	EACH_SHAPE_OF_PNETCDF(ONE, OF_MANY, ncmpi_mput_var, ) \
	EACH_SHAPE_OF_PNETCDF(ONE, OF_MANY, ncmpi_mput_var, _all) \
	ONE(ncmpi_get_vard, LAID_KIND, OWN_TYPE) \
	ONE(ncmpi_get_vard_all, LAID_KIND, OWN_TYPE) \
	ONE(ncmpi_put_vard, LAID_KIND, OWN_TYPE) \
	ONE(ncmpi_put_vard_all, LAID_KIND, OWN_TYPE)
