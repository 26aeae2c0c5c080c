/** The region was not given, and the instance's metadata service does not contain it; the message has the next step. */
export class RegionError extends Error {
  readonly code = 'REGION';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RegionError';
  }
}
