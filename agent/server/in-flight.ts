import type { sendUnaryData, UntypedServiceImplementation } from '@grpc/grpc-js';

/** Counts unary calls that were begun and not answered. */
export type InFlight = {
  /** The same handlers, counted. */
  readonly implementation: UntypedServiceImplementation;
  /** Resolves when no call is under way. */
  idle(): Promise<void>;
};

type UnaryHandler = (call: unknown, reply: sendUnaryData<unknown>) => void;

/** Counts the calls of a service whose methods are all unary. */
export function countInFlight(implementation: UntypedServiceImplementation): InFlight {
  let count = 0;
  let waiting: (() => void)[] = [];
  const ended = (): void => {
    count--;
    if (count > 0) return;
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  const counted = Object.entries(implementation).map(([name, handler]) => {
    const run: UnaryHandler = (call, reply) => {
      count++;
      // The table of methods says that it is one; the library's own type covers streams as well.
      (handler as UnaryHandler)(call, (...answer) => {
        reply(...answer);
        ended();
      });
    };
    return [name, run];
  });
  return {
    implementation: Object.fromEntries(counted) as UntypedServiceImplementation,
    idle: async () => {
      if (count > 0) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}
