/** Path at which the echo server says who asks, and the Pod that it is in. */
export const ECHO_PATH = '/cgi-bin/who';

const SCRIPT = '#!/bin/sh\\nprintf "Content-Type: text/plain\\\\r\\\\n\\\\r\\\\n%s %s" "$REMOTE_ADDR" "$(hostname)"\\n';

/** Makes a line for sh that becomes a web server which says who asks. */
export function echoScript(port: number): string {
  return [
    `mkdir -p /www/cgi-bin && printf '${SCRIPT.replaceAll('%', '%%')}' >/www${ECHO_PATH} && chmod +x /www${ECHO_PATH}`,
    // An address of IPv4: callers would be told as ::ffff:10.0.1.4 otherwise.
    `exec httpd -f -p 0.0.0.0:${port} -h /www`,
  ].join(' && ');
}
