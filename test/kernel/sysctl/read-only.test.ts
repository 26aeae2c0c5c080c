import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import test from 'ava';
import { createNetns, deleteNetns } from '../../../netlink/netns.ts';

const exec = promisify(execFile);
const SYSCTL = new URL('../../../sysctl/sysctl.ts', import.meta.url).href;
const KEYS = new URL('../../../sysctl/sysctl-key.ts', import.meta.url).href;

const SCRIPT = `
  const { openSysctl } = await import('${SYSCTL}');
  const { ipForward } = await import('${KEYS}');
  try { console.log(openSysctl().set(ipForward(), '1')); }
  catch (error) { console.log(error.code, error.message); }
`;

/**
 * Runs the script in a namespace of a new node: `ro` has /proc/sys read-only there, as containers that are not
 * privileged have it; its first process has it writable, or has it not.
 */
async function setForwarding(firstProcess: 'writable' | 'read-only'): Promise<readonly [said: string, is: string]> {
  const name = `tke-test-${randomBytes(4).toString('hex')}`;
  const netns = createNetns(name);
  const seal = 'mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys';
  const inContainer = `unshare -m sh -c '${seal} && exec "$0" "$@"' "$0" "$@"`;
  const first = firstProcess === 'read-only' ? `${seal} && ${inContainer}` : inContainer;
  try {
    const node = [process.execPath, '--input-type=module', '-e', SCRIPT];
    // The shell stays the first process: it has another command to run.
    const argv = [`--net=/run/netns/${name}`, 'unshare', '-m', '-p', '-f', '--mount-proc', 'sh', '-c'];
    const { stdout } = await exec('nsenter', [...argv, `${first}; exit $?`, ...node]);
    const { stdout: value } = await exec('ip', ['netns', 'exec', name, 'cat', '/proc/sys/net/ipv4/ip_forward']);
    return [stdout.trim(), value.trim()];
  } finally {
    netns.close();
    deleteNetns(name);
  }
}

test('Sysctl.set: writes by way of the first process where its own /proc/sys is read-only', async (t) => {
  t.deepEqual(await setForwarding('writable'), ['changed', '1']);
});

test('Sysctl.set: READ_ONLY where the first process cannot write, either', async (t) => {
  const [said, is] = await setForwarding('read-only');
  t.regex(said, /^READ_ONLY sysctl net\.ipv4\.ip_forward: cannot set to 1: EROFS; run privileged/);
  t.is(is, '0');
});
