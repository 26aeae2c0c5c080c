import { callExecutable } from '../../cni-plugins/support/call-executable.ts';
import { executablePath } from '../../support/executables.ts';

type Exit = { readonly code: number | null; readonly stdout?: unknown };

const PROGRAMS = ['tke-eni-agent', 'tke-eni-ipamd', 'tke-eni-ip-scheduler', 'tke-eni-ip-webhook'];
const NOWHERE = ['--state-dir', '/nowhere', '--socket', '/nowhere/agent.sock'];
const CALLS: readonly (readonly string[])[] = [
  ...PROGRAMS.map((program) => [program, '--no-such-flag']),
  ['tke-eni-agent', '--version'],
  ['tke-eni-agent', 'uninstall', '--no-such-flag'],
  ['tke-eni', 'version'],
  ['tke-eni', 'no-such-command'],
  ['tke-eni', 'check', ...NOWHERE],
  ['tke-eni', 'cluster', '--kubeconfig', '/nowhere'],
];

/** Runs executables and returns how they end, and which CNI versions they speak. */
export async function recordExits(): Promise<object> {
  const exits: Record<string, Exit> = {};
  for (const [program = '', ...args] of CALLS) {
    exits[[program, ...args].join(' ')] = { code: (await run(program, args, {})).code };
  }
  for (const plugin of ['tke-route-eni', 'tke-eni-ipamc', 'tke-direct-eni']) {
    const { code, json } = await run(plugin, [], { CNI_COMMAND: 'VERSION' });
    exits[`CNI_COMMAND=VERSION ${plugin}`] = { code, stdout: json };
    exits[`CNI_COMMAND=ADD ${plugin}`] = { code: (await run(plugin, [], { CNI_COMMAND: 'ADD' })).code };
  }
  return exits;
}

async function run(program: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  // Standard output may be a text: only CNI's is JSON.
  const isCni = 'CNI_COMMAND' in env;
  const file = executablePath(program);
  const command = isCni ? ([file, ...args] as const) : (['sh', '-c', '"$0" "$@" > /dev/null', file, ...args] as const);
  return callExecutable([...command], env, '{"cniVersion":"1.1.0"}');
}
