/* The calls that are taken, by what their arguments are. Their place here is their number in records; src/interfaces.rs has the same.
 *
 *   POINTER (file, buffer, count, type, ...): at the file's own or shared position
 *   OFFSET  (file, offset, buffer, count, type, ...)
 *   PLAIN   (file, ...)
 *   the others are each of a kind of their own
 */
#define EACH_CALL(POINTER, OFFSET, PLAIN, OPEN, CLOSE, VIEW) \
	OPEN(MPI_File_open) \
	CLOSE(MPI_File_close) \
	VIEW(MPI_File_set_view) \
	PLAIN(MPI_File_set_size) \
	PLAIN(MPI_File_preallocate) \
	PLAIN(MPI_File_get_size) \
	PLAIN(MPI_File_sync) \
	PLAIN(MPI_File_set_atomicity) \
	PLAIN(MPI_File_set_info) \
	PLAIN(MPI_File_seek) \
	PLAIN(MPI_File_seek_shared) \
	POINTER(MPI_File_read) \
	POINTER(MPI_File_write) \
	POINTER(MPI_File_read_all) \
	POINTER(MPI_File_write_all) \
	OFFSET(MPI_File_read_at) \
	OFFSET(MPI_File_write_at) \
	OFFSET(MPI_File_read_at_all) \
	OFFSET(MPI_File_write_at_all) \
	POINTER(MPI_File_read_shared) \
	POINTER(MPI_File_write_shared) \
	POINTER(MPI_File_read_ordered) \
	POINTER(MPI_File_write_ordered) \
	POINTER(MPI_File_iread) \
	POINTER(MPI_File_iwrite) \
	POINTER(MPI_File_iread_all) \
	POINTER(MPI_File_iwrite_all) \
	OFFSET(MPI_File_iread_at) \
	OFFSET(MPI_File_iwrite_at) \
	OFFSET(MPI_File_iread_at_all) \
	OFFSET(MPI_File_iwrite_at_all) \
	POINTER(MPI_File_iread_shared) \
	POINTER(MPI_File_iwrite_shared) \
	POINTER(MPI_File_read_all_begin) \
	POINTER(MPI_File_write_all_begin) \
	PLAIN(MPI_File_read_all_end) \
	PLAIN(MPI_File_write_all_end) \
	OFFSET(MPI_File_read_at_all_begin) \
	OFFSET(MPI_File_write_at_all_begin) \
	PLAIN(MPI_File_read_at_all_end) \
	PLAIN(MPI_File_write_at_all_end) \
	POINTER(MPI_File_read_ordered_begin) \
	POINTER(MPI_File_write_ordered_begin) \
	PLAIN(MPI_File_read_ordered_end) \
	PLAIN(MPI_File_write_ordered_end)
