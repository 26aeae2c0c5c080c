import { spawn } from 'node:child_process';
import { once } from 'node:events';
import test from 'ava';
import { senderName } from '../../netlink/sender-name.ts';

test('senderName: the kernel, and a further socket of a process', (t) => {
  t.is(senderName(0), 'the kernel');
  t.is(senderName(3_405_778_291), undefined);
});

test('senderName: a process with a socket of that port; one without is not named', async (t) => {
  const script = `
    import { openRtnetlink } from ${JSON.stringify(new URL('../../netlink/rtnetlink.ts', import.meta.url).href)};
    using rtnetlink = openRtnetlink();
    console.log(rtnetlink.portid);
    await new Promise((resolve) => process.stdin.on('close', resolve).resume());`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = await once(child.stdout, 'data');
  t.is(Number(String(line)), child.pid ?? 0);
  t.regex(senderName(child.pid ?? 0) ?? '', new RegExp(`^node.* \\(pid ${child.pid}\\)$`));
  child.stdin.end();
  await once(child, 'exit');
  t.regex(senderName(child.pid ?? 0) ?? '', /^a process that has ended/);
  const idle = spawn('sleep', ['60']);
  await once(idle, 'spawn');
  t.regex(senderName(idle.pid ?? 0) ?? '', /^a process that has ended, or one of a container/);
  idle.kill();
  await once(idle, 'exit');
});
