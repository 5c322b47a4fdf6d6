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
