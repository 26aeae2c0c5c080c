import type { ClusterNode } from '../../test/cluster/cluster-node.ts';
import { median } from '../row.ts';

/** What starting a plugin and nothing else takes: it answers VERSION. */
type PluginStart = { readonly wallMs: number; readonly cpuMs: number };

const ROUNDS = 20;

/** Measures the starts of plugins on a node, by path, in turn; medians. */
export async function measureStarts(
  node: ClusterNode,
  plugins: readonly string[],
): Promise<ReadonlyMap<string, PluginStart>> {
  // A shell forks cheaply, and reads the kernel's account of each child.
  const script = `
    TIMEFORMAT='%U %S'
    for ((n = 0; n < ${ROUNDS}; n++)); do
      for plugin; do
        from=$EPOCHREALTIME
        cpu=$( { time "$plugin" <<< '{"cniVersion": "1.0.0"}' > /dev/null 2>&1; } 2>&1 )
        echo "$plugin $from $EPOCHREALTIME $cpu"
      done
    done`;
  const env = { PATH: '/usr/bin:/bin', LC_ALL: 'C', CNI_COMMAND: 'VERSION' };
  const printed = await node.exec(['bash', '--norc', '-c', script, 'bash', ...plugins], { env, timeoutMs: 60_000 });
  const samples = printed
    .trim()
    .split('\n')
    .map((line) => {
      const [plugin = '', from, to, user, system] = line.split(' ');
      return { plugin, wallMs: (Number(to) - Number(from)) * 1000, cpuMs: (Number(user) + Number(system)) * 1000 };
    });
  return new Map(
    plugins.map((plugin) => {
      const own = samples.filter((sample) => sample.plugin === plugin);
      return [
        plugin,
        { wallMs: median(own.map(({ wallMs }) => wallMs)), cpuMs: median(own.map(({ cpuMs }) => cpuMs)) },
      ];
    }),
  );
}
