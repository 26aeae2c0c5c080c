import type { OpenAuditor } from './auditor.ts';

/** A13: what other programs have put on a node stays as they made it. */
export const openOthersState: OpenAuditor = (world) => ({
  name: 'A13',
  step: () => {
    for (const { name, whole } of world.machines)
      for (const gone of whole?.changedOfOthers() ?? [])
        world.violate('A13', `${name} has no longer what another program put there: ${gone}`);
  },
});
