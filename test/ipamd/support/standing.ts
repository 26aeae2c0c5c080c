/** Definitions that nobody deletes. */
export const STANDING = { areSame: async () => true, isOwnDeletion: async () => true, wereLostLately: false } as const;
