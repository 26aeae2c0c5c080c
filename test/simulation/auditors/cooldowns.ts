import type { OpenAuditor } from './auditor.ts';

/** Two looks, half a second apart, are what is known of the end of one sandbox and the begin of the next. */
const TOLERANCE_MS = 1_000;

/** A8: between two Pods an address has a cooldown, or its connections are forgotten. */
export const openCooldowns: OpenAuditor = (world) => {
  const users = new Map<string, { readonly uid: string; readonly untilMs: number }>();
  return {
    name: 'A8',
    step: () => {
      const nowMs = world.time.nowMs;
      for (const { kubelet, whole } of world.machines) {
        if (whole === undefined) continue;
        for (const { ips, uid, pod } of kubelet.sandboxes.values()) {
          for (const ip of ips) {
            const last = users.get(ip);
            users.set(ip, { uid, untilMs: nowMs });
            if (last === undefined || last.uid === uid) continue;
            const isFlushed = (whole.flushedMs.get(ip) ?? Number.NEGATIVE_INFINITY) >= last.untilMs;
            const pauseMs = nowMs - last.untilMs;
            if (!isFlushed && pauseMs < world.cooldownMs - TOLERANCE_MS)
              world.violate('A8', `${pod} has ${ip} ${pauseMs} ms after another Pod`);
          }
        }
      }
    },
  };
};
