import type { NetnsView } from '../../../sim/support/netns.ts';

/** A filter with a program on a link, as tc(8) lists it. */
type SeenFilter = {
  readonly dev: string;
  readonly direction: 'ingress' | 'egress';
  readonly name: string;
  readonly programId: number;
};

type Listed = { readonly options?: { readonly bpf_name?: string; readonly prog?: { readonly id: number } } };

/** Lists the filters with programs of all links of a namespace. */
export async function programFilters(netns: NetnsView): Promise<readonly SeenFilter[]> {
  const disciplines: readonly { readonly kind: string; readonly dev: string }[] = JSON.parse(
    await netns.run(['tc', '-j', 'qdisc', 'show']),
  );
  const found: SeenFilter[] = [];
  for (const { kind, dev } of disciplines) {
    if (kind !== 'clsact') continue;
    for (const direction of ['ingress', 'egress'] as const) {
      // A link may go in between.
      const { code, stdout } = await netns.tryRun(['tc', '-j', 'filter', 'show', 'dev', dev, direction]);
      const list: readonly Listed[] = code === 0 ? JSON.parse(stdout) : [];
      for (const { options } of list) {
        if (options?.bpf_name !== undefined)
          found.push({ dev, direction, name: options.bpf_name, programId: options.prog?.id ?? 0 });
      }
    }
  }
  return found;
}
