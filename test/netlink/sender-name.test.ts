import { spawn } from 'node:child_process';
import { once } from 'node:events';
import test from 'ava';
import { senderName } from '../../netlink/sender-name.ts';

test('senderName: the kernel, a process, one that has ended, and a further socket', async (t) => {
  t.is(senderName(0), 'the kernel');
  const child = spawn('sleep', ['60']);
  await once(child, 'spawn');
  t.is(senderName(child.pid ?? 0), `sleep (pid ${child.pid})`);
  child.kill();
  await once(child, 'exit');
  t.is(senderName(child.pid ?? 0), `pid ${child.pid}, which has ended`);
  t.is(senderName(3_405_778_291), undefined);
});
