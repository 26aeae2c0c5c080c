/** What AVA's reporter reads of an error of a test. */
type ReportedError = {
  readonly type: 'native';
  readonly name: string;
  readonly stack: string | undefined;
  readonly originalError: Error;
};

/** The part of AVA's reporter for TAP that is mended. */
type Reporter = { writeTest(event: { readonly err?: Error | ReportedError }, flags: object): void };

/**
 * Has AVA's reporter for TAP name the tests that were pending at a timeout or at `process.exit()`. It makes an error of its own for them,
 * which it cannot write itself, and crashes (avajs/ava#3461). Changes the class.
 */
export function reportTimeouts({ prototype }: { readonly prototype: Reporter }): void {
  const { writeTest } = prototype;
  prototype.writeTest = function (event, flags) {
    const { err } = event;
    writeTest.call(this, err instanceof Error ? { ...event, err: asReported(err) } : event, flags);
  };
}

function asReported(error: Error): ReportedError {
  return { type: 'native', name: error.name, stack: error.stack, originalError: error };
}
