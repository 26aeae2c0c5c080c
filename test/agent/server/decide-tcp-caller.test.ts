import test from 'ava';
import { decideTcpCaller } from '../../../agent/server/decide-tcp-caller.ts';

const ROOT = { state: 1, uid: 0, inode: 77 };

test('decideTcpCaller: only root with an open socket may call', (t) => {
  t.is(decideTcpCaller(ROOT), undefined);
  t.is(decideTcpCaller({ ...ROOT, uid: 1_000 }), 'a process of uid 1000');
  t.regex(decideTcpCaller(undefined) ?? '', /no such socket/);
});

test('decideTcpCaller: uid 0 of a socket that was closed is no word of the kernel about its owner', (t) => {
  // FIN_WAIT1, FIN_WAIT2, TIME_WAIT, CLOSE, CLOSE_WAIT, LAST_ACK, LISTEN, CLOSING
  for (const state of [4, 5, 6, 7, 8, 9, 10, 11])
    t.is(decideTcpCaller({ ...ROOT, state }), 'the caller has closed its socket');
  t.is(decideTcpCaller({ ...ROOT, inode: 0 }), 'the caller has closed its socket');
});
