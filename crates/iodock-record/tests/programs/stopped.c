/* Handles a signal, is stopped and continued by its child, and ends with status 0 if both happened. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int continued, handled;
static void on_continue(int signal) { (void)signal; continued++; }
static void on_user(int signal) { (void)signal; handled++; }
int main(void) {
    signal(SIGCONT, on_continue);
    signal(SIGUSR1, on_user);
    pid_t parent = getpid();
    if (fork() == 0) {
        kill(parent, SIGUSR1);
        kill(parent, SIGSTOP);
        usleep(200000);
        kill(parent, SIGCONT);
        _exit(0);
    }
    while (wait(0) < 0 || !continued || !handled) usleep(1000);
    char text[2] = {'0' + continued, '0' + handled};
    return text[0] == '1' && text[1] == '1' ? 0 : 1;
}
