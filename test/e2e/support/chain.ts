import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../../sim/support/netns.ts';
import { type CniAnswer, execCni } from '../../support/exec-cni.ts';
import { binDirOf } from '../../support/executables.ts';
import { OUR_PLUGINS, type ScenePod } from './scene-node.ts';

/** Where Debian puts the reference plugins. */
const REFERENCE_BIN_DIR = '/usr/lib/cni';

/** A network configuration list as a file in /etc/cni/net.d holds it. */
export type Conflist = {
  readonly cniVersion: string;
  readonly cniVersions?: readonly string[];
  readonly name: string;
  readonly plugins: readonly ({ readonly type: string } & JsonObject)[];
};

/** What the runtime has for those plugins that ask for it by `capabilities`. */
type RuntimeConfig = Readonly<Record<string, unknown>>;

/**
 * Runs ADD, CHECK or DEL of a list as libcni does: each plugin in the node's namespace, with the list's name and
 * version, `runtimeConfig` of its capabilities, and `prevResult`. ADD and CHECK go forward, DEL backward with the final
 * result. Returns the answers in the order of the calls; stops at the first failure.
 * @see CNI SPEC, section 4 "Plugin delegation", and libcni's api.go
 */
export async function callChain(
  command: 'ADD' | 'CHECK' | 'DEL',
  pod: ScenePod,
  list: Conflist,
  options: { readonly runtimeConfig?: RuntimeConfig; readonly prevResult?: JsonObject } = {},
): Promise<readonly CniAnswer[]> {
  const answers: CniAnswer[] = [];
  let prevResult = options.prevResult;
  for (const plugin of command === 'DEL' ? list.plugins.toReversed() : list.plugins) {
    const answer = await callOne(command, pod, confOf(list, plugin, options.runtimeConfig ?? {}, prevResult));
    answers.push(answer);
    if (answer.exitCode !== 0) return answers;
    if (command === 'ADD') prevResult = answer.result;
  }
  return answers;
}

function confOf(
  { cniVersion, name }: Conflist,
  plugin: Conflist['plugins'][number],
  runtimeConfig: RuntimeConfig,
  prevResult: JsonObject | undefined,
): JsonObject & { readonly type: string } {
  const { capabilities = {}, ...rest } = plugin;
  const wanted = Object.entries(runtimeConfig).filter(([key]) => (capabilities as RuntimeConfig)[key] === true);
  return {
    ...rest,
    type: plugin.type,
    cniVersion,
    name,
    ...(wanted.length === 0 ? {} : { runtimeConfig: Object.fromEntries(wanted) }),
    ...(prevResult === undefined ? {} : { prevResult }),
  };
}

function callOne(
  command: 'ADD' | 'CHECK' | 'DEL',
  pod: ScenePod,
  conf: JsonObject & { readonly type: string },
): Promise<CniAnswer> {
  // Where the agent has installed, its files are called.
  const { cniBinDir } = pod.node.agent;
  const ours = existsSync(join(cniBinDir, OUR_PLUGINS[0])) ? cniBinDir : binDirOf(OUR_PLUGINS[0]);
  const isThere = OUR_PLUGINS.some((name) => name === conf.type) || existsSync(join(cniBinDir, conf.type));
  return execCni({
    binary: join(isThere ? ours : REFERENCE_BIN_DIR, conf.type),
    command,
    conf,
    netns: pod.node.netns.path,
    env: {
      CNI_CONTAINERID: pod.containerId,
      CNI_NETNS: pod.netns.path,
      CNI_IFNAME: pod.ifName,
      ...(pod.args === undefined ? {} : { CNI_ARGS: pod.args }),
      // Where plugins look for those that they delegate to: ipam.
      CNI_PATH: `${ours}:${REFERENCE_BIN_DIR}`,
    },
  });
}
