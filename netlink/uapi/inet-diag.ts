/**
 * Constants of socket diagnosis, kernel names kept.
 * @see sock_diag(7), uapi/linux/sock_diag.h, uapi/linux/inet_diag.h, net/tcp_states.h
 */
export const SOCK_DIAG_BY_FAMILY = 20;

export const TCP_ESTABLISHED = 1;

/** Both words of `idiag_cookie` in a request that knows no cookie. */
export const INET_DIAG_NOCOOKIE = 0xffff_ffff;
