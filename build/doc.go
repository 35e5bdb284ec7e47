// Package build turns git revisions into executables, all before the first
// run of a session:
//
//  1. [Open] makes the session's private temporary folder and clears away what
//     killed sessions left behind;
//  2. [Workspace.Checkout] puts a ref, or the working tree with its tracked
//     changes, into a worktree of its own in that folder;
//  3. [Workspace.Build] runs the plan's build command there;
//  4. [Workspace.Close] removes the worktrees and the folder.
//
// It never touches the user's index, working tree, stash, HEAD, refs or
// configuration, and runs no hook of the repository. It starts nothing that
// outlives a build. It imports no other package of the project.
package build
