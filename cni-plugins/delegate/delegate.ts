import { CNI_CODE } from '../../agent/api/cni-code.ts';
import { throwIfFailed } from '../plugin-answer.ts';
import type { Plugins } from '../plugin-calls.ts';
import type { PluginConf } from '../skel/conf.ts';
import type { CniEnv } from '../skel/env.ts';
import { CniError } from '../skel/error.ts';
import { type DelegateConf, type DelegatePlugin, findDelegate, hasSince, stdinOf } from './delegate-conf.ts';
import {
  type DelegateRecord,
  listDelegateRecords,
  readDelegateRecord,
  removeDelegateRecord,
  writeDelegateRecord,
} from './delegate-record.ts';
import { recordFolder } from './record-path.ts';

/** Calls other plugins for the Pods whose annotation names a network that is not ours. */
export type Delegate = {
  /**
   * Makes the network `name` of a configuration in `confDir`; returns the last plugin's result as it was printed. `refusal`
   * says why the name is none of the agent's.
   */
  add(confDir: string, name: string, refusal: string): string;
  /** Ends what ADD made; false when the interface is none of other plugins. */
  del(): boolean;
  /** Lets them check it; false when the interface is none of other plugins. */
  check(): boolean;
  /** Ends what is not in the list, and lets each network collect. */
  gc(valid: readonly { readonly containerID: string; readonly ifname: string }[]): void;
};

/** What a delegation needs of the call that it is made for. */
type DelegateContext = {
  readonly env: Pick<CniEnv, 'containerId' | 'ifName'>;
  readonly conf: Pick<PluginConf, 'cniVersion' | 'dataDir' | 'runtimeConfig' | 'prevResult'>;
  readonly plugins: Plugins;
};

/**
 * Opens the delegation to other plugins by execution. Each failure is the plugin's own, with its name.
 * @see CNI SPEC, "Section 4: Plugin Delegation"
 */
export function openDelegate(context: DelegateContext): Delegate {
  const { conf, env } = context;
  const folder = recordFolder(conf.dataDir);
  const end = (record: DelegateRecord, variables: Variables = {}): void => {
    delAll(context, record.conf, variables);
    removeDelegateRecord(folder, record);
  };
  return {
    add: (confDir, name, refusal) => {
      const found = findDelegate(confDir, name, refusal);
      // A former ADD of this interface that could not be undone.
      const former = readDelegateRecord(folder, env);
      if (former !== undefined) end(former);
      const record = { containerId: env.containerId, ifName: env.ifName, conf: found };
      writeDelegateRecord(folder, record);
      try {
        return addAll(context, found);
      } catch (error) {
        undo(() => end(record, { CNI_COMMAND: 'DEL' }));
        throw error;
      }
    },
    del: () => {
      const record = readDelegateRecord(folder, env);
      if (record !== undefined) end(record);
      return record !== undefined;
    },
    check: () => {
      const record = readDelegateRecord(folder, env);
      if (record !== undefined) checkAll(context, record.conf);
      return record !== undefined;
    },
    gc: (valid) => {
      const live = new Set(valid.map(({ containerID, ifname }) => `${containerID} ${ifname}`));
      const records = listDelegateRecords(folder);
      const isLive = ({ containerId, ifName }: DelegateRecord) => live.has(`${containerId} ${ifName}`);
      for (const record of records.filter((one) => !isLive(one))) end(record, delOf(record));
      const networks = new Map(records.map(({ conf: one }) => [JSON.stringify(one), one]));
      for (const network of networks.values()) gcAll(context, network, valid);
    },
  };
}

/** Variables of the environment that differ from those of this call. */
type Variables = Readonly<Record<string, string>>;

function delOf({ containerId, ifName }: DelegateRecord): Variables {
  return { CNI_COMMAND: 'DEL', CNI_CONTAINERID: containerId, CNI_IFNAME: ifName, CNI_NETNS: '', CNI_ARGS: '' };
}

/** The first error is the one to report; the record stays, so that DEL and GC try again. */
function undo(end: () => void): void {
  try {
    end();
  } catch {
    // See above.
  }
}

function addAll(context: DelegateContext, network: DelegateConf): string {
  let printed = '';
  for (const plugin of network.plugins) {
    const more = printed === '' ? {} : { prevResult: JSON.parse(printed) as unknown };
    printed = callOne(context, network, plugin, { more });
    try {
      JSON.parse(printed);
    } catch (cause) {
      throw new CniError(CNI_CODE.decode, `${plugin.type} of network ${network.name} printed no result`, '', { cause });
    }
  }
  return printed;
}

function delAll(context: DelegateContext, network: DelegateConf, variables: Variables): void {
  const more = hasSince(versionOf(context, network), '0.4.0') ? prevResultOf(context) : {};
  for (const plugin of network.plugins.toReversed()) callOne(context, network, plugin, { more, variables });
}

function checkAll(context: DelegateContext, network: DelegateConf): void {
  if (network.disableCheck === true || !hasSince(versionOf(context, network), '0.4.0')) return;
  for (const plugin of network.plugins) callOne(context, network, plugin, { more: prevResultOf(context) });
}

function gcAll(context: DelegateContext, network: DelegateConf, valid: readonly object[]): void {
  if (network.disableGC === true || !hasSince(versionOf(context, network), '1.1.0')) return;
  const more = { 'cni.dev/valid-attachments': valid, 'cni.dev/attachments': valid };
  for (const plugin of network.plugins) callOne(context, network, plugin, { more });
}

function prevResultOf({ conf }: DelegateContext): Readonly<Record<string, unknown>> {
  return conf.prevResult === undefined ? {} : { prevResult: conf.prevResult.raw };
}

function versionOf({ conf }: DelegateContext, network: DelegateConf): string {
  return network.cniVersion ?? conf.cniVersion;
}

function callOne(
  context: DelegateContext,
  network: DelegateConf,
  plugin: DelegatePlugin,
  { more, variables = {} }: { readonly more: Readonly<Record<string, unknown>>; readonly variables?: Variables },
): string {
  const { plugins, conf } = context;
  const path = plugins.find(plugin.type);
  const name = `${plugin.type} of network ${network.name}`;
  if (path === undefined) {
    throw new CniError(
      CNI_CODE.io,
      `${name} is in no folder of CNI_PATH, ${plugins.folders}`,
      'install the plugin there on this node',
    );
  }
  const cniVersion = versionOf(context, network);
  const stdin = stdinOf(network, plugin, { cniVersion, runtimeConfig: conf.runtimeConfig, more });
  const answer = plugins.run(path, stdin, variables);
  throwIfFailed(answer, `${name} (CNI ${cniVersion})`);
  return answer.stdout;
}
